// An application that writes without a break and remembers what it was promised, with
// a cluster client of another make than the writer's (../writer), whose flags, input and
// report it shares:
//
//   node client.js --address HOST:PORT [--ca FILE] [--prefix P] [--clients N] [--every MS] [--preload N]
//
// Names in certificates are verified, which is what Node.js does unless told otherwise.
'use strict';

const fs = require('node:fs');
const readline = require('node:readline');
const tls = require('node:tls');
const { parseArgs } = require('node:util');
const { Cluster } = require('iovalkey');

const options = parseArgs({
  options: {
    address: { type: 'string' }, ca: { type: 'string' }, prefix: { type: 'string', default: 'js' },
    clients: { type: 'string', default: '1' }, every: { type: 'string', default: '10' }, preload: { type: 'string', default: '0' },
  },
}).values;
const batch = 200;
// How long an operation may take before it counts as failed: longer than the election
// of a new primary, as the writer's.
const opTimeout = 30_000;

// checkServerIdentity is what Node.js does by itself, but says what it finds: the client
// only says that a connection was closed.
let stranger;
function checkServerIdentity(host, cert) {
  const err = tls.checkServerIdentity(host, cert);
  if (err) {
    stranger = err;
    console.error(`client: ${err.message}`);
  }
  return err;
}

// connect makes a client that asks for the topology every half second and looks names up
// anew for each connection: an address instead of the name could not be verified.
function connect(address) {
  const [, host, port] = address.match(/^(.*):(\d+)$/);
  const cluster = new Cluster([{ host, port: Number(port) }], {
    dnsLookup: (name, done) => done(null, name),
    slotsRefreshInterval: 500,
    slotsRefreshTimeout: 2000,
    maxRedirections: 1000,
    // An open connection stays with the server that its port led to when it was opened.
    // While that one goes, it redirects to the port that it had.
    retryDelayOnMoved: 20,
    retryDelayOnFailover: 100,
    retryDelayOnClusterDown: 100,
    retryDelayOnTryAgain: 100,
    clusterRetryStrategy: () => 100,
    redisOptions: {
      connectTimeout: 2000,
      tls: options.ca ? { ca: fs.readFileSync(options.ca), checkServerIdentity } : undefined,
    },
  });
  cluster.on('error', (err) => console.error(`client: ${err.message}`));
  cluster.on('node error', () => {
    if (stranger) process.exit(1); // no retry makes it right
  });
  return cluster;
}

// within fails when an operation takes too long.
function within(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${opTimeout} ms`)), opTimeout);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const log = { before: [], acks: [], errors: [], marks: [] };

async function preload(client) {
  const total = Number(options.preload);
  for (let from = 0; from < total; from += batch) {
    const keys = Array.from({ length: Math.min(batch, total - from) }, (_, i) => `${options.prefix}:pre:${from + i}`);
    await Promise.all(keys.map((key) => within(client.set(key, key))));
    log.before.push(...keys);
  }
}

async function write(client, key) {
  const sent = performance.now();
  try {
    await within(client.set(key, key));
    const at = performance.now();
    log.acks.push({ key, at, took: at - sent });
  } catch (err) {
    log.errors.push({ at: performance.now(), text: err.message });
  }
}

// readBack returns the acknowledged keys that are gone or hold something else.
async function readBack(client, keys) {
  const lost = [];
  for (let from = 0; from < keys.length; from += batch) {
    const part = keys.slice(from, from + batch);
    const values = await Promise.all(part.map((key) => within(client.get(key))));
    lost.push(...part.filter((key, i) => values[i] !== key));
  }
  return lost;
}

// window sums up the time from one mark to the next.
function window({ name, at: from }, until) {
  const acks = log.acks.filter((a) => a.at >= from && a.at < until);
  const errors = log.errors.filter((e) => e.at >= from && e.at < until);
  const took = acks.map((a) => a.took).sort((a, b) => a - b);
  let last = from;
  let gap = 0;
  for (const a of acks) {
    gap = Math.max(gap, a.at - last);
    last = a.at;
  }
  return {
    name, ms: until - from, writes: acks.length, failed: errors.length,
    errors: [...new Set(errors.map((e) => e.text))].slice(0, 5),
    gapMs: [Math.max(gap, until - last)],
    worstMs: took.at(-1) ?? 0, medianMs: took[Math.floor(took.length / 2)] ?? 0,
  };
}

async function main() {
  const clients = Array.from({ length: Number(options.clients) }, () => connect(options.address));
  await preload(clients[0]);
  const mark = (name) => log.marks.push({ name, at: performance.now() });
  mark('start');
  const running = new Set();
  const timers = clients.map((client, c) => {
    let i = 0;
    return setInterval(() => {
      const op = write(client, `${options.prefix}:${c}:${i++}`).finally(() => running.delete(op));
      running.add(op);
    }, Number.parseFloat(options.every));
  });
  say({ writing: true });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [verb, name] = line.split(' ');
    if (verb === 'stop') break;
    if (verb !== 'mark') throw new Error(`standard input has ${JSON.stringify(line)}, which is neither mark nor stop`);
    mark(name);
    say({ mark: name });
  }
  timers.forEach(clearInterval);
  await Promise.all(running);
  const end = performance.now();
  log.acks.sort((a, b) => a.at - b.at);
  const keys = [...log.before, ...log.acks.map((a) => a.key)];
  const lost = await readBack(clients[0], keys);
  say({
    acknowledged: keys.length, lost: lost.length, lostKeys: lost.slice(0, 10),
    windows: log.marks.map((m, i) => window(m, log.marks[i + 1]?.at ?? end)),
  });
}

main().then(() => process.exit(0), (err) => {
  console.error(`client.js: ${err.stack}`);
  process.exit(1);
});
