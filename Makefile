# Every target works alone and twice in a row, as root, without input, from a
# machine that has Go, git and make.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory --no-builtin-rules --warn-undefined-variables

# The ambient kubeconfig is out of reach of all that runs from here: a test must
# not find its way into production. USE_KUBECONFIG=<path> names a cluster.
override KUBECONFIG := /dev/null
export KUBECONFIG
USE_KUBECONFIG ?=
export USE_KUBECONFIG

# Pure Go everywhere: the released binaries are static, and one kind of build
# means that tests and binaries share the build cache.
export CGO_ENABLED := 0

# An image of the manager that the cluster of USE_KUBECONFIG can pull.
MANAGER_IMAGE ?=
export MANAGER_IMAGE

# KEEP=1 makes test-e2e and bench use a local Kubernetes that runs, and leave it.
KEEP ?=

# RUN=<regexp> selects tests, BENCH=<regexp> benchmarks.
RUN ?=
BENCH ?= .
run_flag := $(if $(RUN),-run '$(RUN)')

MODULE := github.com/kubectl-valkey/kubectl-valkey
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || echo v0.0.0-$$(git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown))
COMMIT := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
# The commit's time, so that the same commit gives the same binaries.
DATE := $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || echo unknown)
IMAGE := kubectl-valkey/manager:$(VERSION)

GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w \
	-X $(MODULE)/pkg/version.version=$(VERSION) \
	-X $(MODULE)/pkg/version.commit=$(COMMIT) \
	-X $(MODULE)/pkg/version.date=$(DATE)'

CLUSTER := go run ./e2e/cluster
LOGS := $(CURDIR)/dist/logs

# Tools, built once into the cache.
CACHE := $(if $(value KUBECTL_VALKEY_CACHE),$(KUBECTL_VALKEY_CACHE),$(HOME)/.cache/kubectl-valkey)
TOOLS := $(CACHE)/tools

# The packages of the end-to-end tests' client in JavaScript, from the registry that the
# machine's npm is set to. Without npm the tests say what they don't check.
NODE_CLIENT := $(if $(shell command -v npm),$(TOOLS)/nodeclient-$(shell sha256sum e2e/nodeclient/package-lock.json | cut -c 1-16))
export E2E_NODE_CLIENT := $(NODE_CLIENT)

$(TOOLS)/nodeclient-%:
	@echo '==> installing the packages of e2e/nodeclient into $(TOOLS) (once)'
	@mkdir -p '$(TOOLS)'; new=$$(mktemp -d '$(TOOLS)/.unfinished-XXXXXX'); trap 'rm -rf "$$new"' EXIT; \
	cp e2e/nodeclient/package.json e2e/nodeclient/package-lock.json "$$new"; \
	npm ci --prefix "$$new" --ignore-scripts --no-audit --no-fund; \
	chmod 755 "$$new"; rm -rf '$@'; mv "$$new" '$@'

# $(call tool,name,version,package) makes the rule for one tool. A killed build
# leaves no half a tool: the folder appears complete or not at all.
define tool
$(TOOLS)/$(1)-$(2)/$(1):
	@echo '==> building $(1) $(2) into $(TOOLS) (once)'
	@mkdir -p '$(TOOLS)'; new=$$$$(mktemp -d '$(TOOLS)/.unfinished-XXXXXX'); trap 'rm -rf "$$$$new"' EXIT; \
	GOBIN="$$$$new" GOFLAGS=-trimpath go install '$(3)@$(2)'; \
	chmod 755 "$$$$new"; rm -rf '$(TOOLS)/$(1)-$(2)'; mv "$$$$new" '$(TOOLS)/$(1)-$(2)'
endef
CONTROLLER_GEN := $(TOOLS)/controller-gen-v0.23.0/controller-gen
KUSTOMIZE := $(TOOLS)/kustomize-v5.8.2/kustomize
GOLANGCI_LINT := $(TOOLS)/golangci-lint-v2.15.0/golangci-lint
GOVULNCHECK := $(TOOLS)/govulncheck-v1.9.0/govulncheck
KREW := $(TOOLS)/krew-v0.4.3/krew
CYCLONEDX := $(TOOLS)/cyclonedx-gomod-v1.10.0/cyclonedx-gomod
$(eval $(call tool,controller-gen,v0.23.0,sigs.k8s.io/controller-tools/cmd/controller-gen))
$(eval $(call tool,kustomize,v5.8.2,sigs.k8s.io/kustomize/kustomize/v5))
$(eval $(call tool,golangci-lint,v2.15.0,github.com/golangci/golangci-lint/v2/cmd/golangci-lint))
$(eval $(call tool,govulncheck,v1.9.0,golang.org/x/vuln/cmd/govulncheck))
$(eval $(call tool,krew,v0.4.3,sigs.k8s.io/krew/cmd/krew))
$(eval $(call tool,cyclonedx-gomod,v1.10.0,github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod))

##@ See it run

.PHONY: help
help: ## Print this list
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' Makefile
	@printf '\nVariables: %s\n' 'USE_KUBECONFIG=<path> uses that Kubernetes instead of the local one,'
	@printf '           %s\n' 'MANAGER_IMAGE=<ref> names a manager image that it can pull,' \
	  'RUN=<regexp> selects tests, KEEP=1 keeps the local Kubernetes before and after,' \
	  'KUBECTL_VALKEY_CACHE=<dir> moves the cache of built parts.'

.PHONY: demo
demo: build image ## Start a local Kubernetes, install the manager, create a cluster, use it
	@go run ./e2e/demo --image-archive dist/manager-image.tar --image '$(IMAGE)'

.PHONY: down
down: ## Stop the local Kubernetes and remove it; its logs and the cache of built parts stay
	@$(CLUSTER) down

##@ Test

# The stages of `make test`, those that fail fast first.
STAGES := lint verify-generate test-unit test-api test-release test-e2e

.PHONY: test
test: ## Run every check and test once: lint, generated files, unit, API server, end to end
	@rm -rf '$(LOGS)'; mkdir -p '$(LOGS)'; \
	for stage in $(STAGES); do \
	  echo; echo "==> $$stage"; start=$$SECONDS; \
	  $(MAKE) $$stage || { echo "==> $$stage failed after $$((SECONDS - start)) s; logs are in $(LOGS)"; exit 1; }; \
	  printf '    %-16s %5d s\n' $$stage $$((SECONDS - start)) | tee -a '$(LOGS)/times'; \
	done; \
	echo; echo '==> times'; cat '$(LOGS)/times'; printf '    %-16s %5d s\n' all $$SECONDS; \
	for stage in test-unit test-api test-release test-e2e; do \
	  echo; echo "==> $$stage"; grep -E '^(ok|FAIL)' "$(LOGS)/$$stage/go-test.log"; \
	done

.PHONY: test-full
test-full: export E2E_FULL := 1
test-full: test ## Run test with every repeat, the whole matrix and the long soaks

.PHONY: test-unit
test-unit: ## Run the unit tests: no cluster, no root, two minutes at most
	@mkdir -p '$(LOGS)/$@'
	@go test $(run_flag) ./... | tee '$(LOGS)/$@/go-test.log' | grep -v 'no test files'

# Packages with tests behind a build tag.
tagged = $(shell grep -rlE '^//go:build (.*[^a-z0-9])?$(1)([^a-z0-9]|$$)' --include='*_test.go' cmd deploy docs e2e pkg | xargs -r dirname | sort -u | sed 's,^,./,')

.PHONY: test-api
test-api: ## Run the tests against a real API server
	@mkdir -p '$(LOGS)/$@'
	@assets=$$($(CLUSTER) assets); \
	KUBEBUILDER_ASSETS="$$assets" go test -tags api -count=1 -timeout 20m $(run_flag) $(call tagged,api) | tee '$(LOGS)/$@/go-test.log'

# Starts a recipe that runs against a Kubernetes; $$kubeconfig names it. The local
# one is started anew (a demo may have left clusters in it; KEEP=1 takes it as it
# is), given the manager's image, and stopped whatever happens; after a failure
# what it said is kept first.
define with_cluster
logs='$(LOGS)/$@'; rm -rf "$$logs"; mkdir -p "$$logs"; \
image='$(MANAGER_IMAGE)'; kubeconfig='$(USE_KUBECONFIG)'; \
collect() { \
  export KUBECONFIG="$$kubeconfig" PATH="$$PATH:$$($(CLUSTER) assets 2>/dev/null)"; \
  kubectl get nodes,pods,services,valkey -A -o wide >"$$logs/objects.txt"; \
  kubectl get valkeyclusters,valkeynodes,pods -A -o yaml >"$$logs/objects.yaml"; \
  kubectl get events -A --sort-by=.lastTimestamp -o wide >"$$logs/events.txt"; \
  kubectl logs -n valkey-operator -l app=valkey-operator --tail=-1 --prefix >"$$logs/manager.log"; \
  [ -n '$(USE_KUBECONFIG)' ] || cp -r /var/log/kubectl-valkey "$$logs/kubernetes"; \
}; \
finish() { \
  status=$$?; trap - EXIT; \
  if [ $$status -ne 0 ]; then collect 2>"$$logs/collect.log" || true; echo "failed; logs are in $$logs"; fi; \
  if [ -z '$(USE_KUBECONFIG)$(KEEP)' ]; then $(CLUSTER) down >"$$logs/down.log" 2>&1 || { cat "$$logs/down.log"; status=1; }; fi; \
  exit $$status; \
}; \
trap finish EXIT; \
if [ -z "$$kubeconfig" ]; then \
  [ -n '$(KEEP)' ] || $(CLUSTER) down; \
  $(CLUSTER) up; image='$(IMAGE)'; $(CLUSTER) load dist/manager-image.tar; kubeconfig=$$($(CLUSTER) kubeconfig); \
fi; \
export E2E_KUBECONFIG="$$kubeconfig" E2E_MANAGER_IMAGE="$$image" E2E_LOGS="$$logs"
endef

# The verdict is about the suite's run; upgrades take the manager away, and the tests
# of the local Kubernetes start it anew, so they come last. With -p 1 packages run in
# this order.
e2e_first := ./e2e/suite ./e2e/verdict ./e2e/upgrade
e2e_packages = $(e2e_first) $(filter-out $(e2e_first) ./e2e/bench $(if $(USE_KUBECONFIG),./e2e/cluster),$(call tagged,e2e))

.PHONY: test-e2e
test-e2e: build image $(NODE_CLIENT) ## Run the end-to-end tests on the local Kubernetes or USE_KUBECONFIG
	@$(with_cluster); \
	go test -tags e2e -count=1 -p 1 -timeout 75m $(run_flag) $(e2e_packages) | tee "$$logs/go-test.log"

.PHONY: bench
bench: build image ## Measure create to Active beside the floor, for docs/performance.md
	@$(with_cluster); \
	[ -n '$(USE_KUBECONFIG)' ] || for node in node1 node2 node3; do $(CLUSTER) node pods-first $$node; done; \
	go test -tags e2e -count=1 -p 1 -timeout 60m -run '^$$' -bench '$(BENCH)' -benchtime 1x ./e2e/bench | tee "$$logs/bench.txt"; \
	echo "the figures are in $$logs/bench.txt"

FOR ?= 10m

.PHONY: soak
soak: ## Simulate clusters around the real planner for FOR=10m
	@go run ./pkg/plan/sim/soak -for '$(FOR)'

##@ Check

.PHONY: lint
lint: $(GOLANGCI_LINT) $(GOVULNCHECK) ## Check formatting, go.mod, go vet, golangci-lint and known vulnerabilities
	@echo 'formatting'; '$(GOLANGCI_LINT)' fmt --diff
	@echo 'go.mod'; go mod tidy -diff
	@echo 'go vet'; go vet ./... && go vet -tags api,e2e,release ./... && GOOS=windows go vet ./cmd/kubectl-valkey && GOOS=darwin go vet ./cmd/kubectl-valkey
	@echo 'alert rules'; go -C deploy/alerts/check test ./...
	@echo 'golangci-lint'; '$(GOLANGCI_LINT)' run --allow-serial-runners ./...
	@echo 'govulncheck'; out=$$(mktemp); trap 'rm -f "$$out"' EXIT; status=0; \
	timeout 300 '$(GOVULNCHECK)' ./... >"$$out" 2>&1 || status=$$?; \
	if [ $$status -ne 0 ] && grep -q 'fetching vulnerabilities' "$$out"; then \
	  echo 'govulncheck COULD NOT RUN: its database of vulnerabilities is out of reach from here; nothing was checked. It said:'; \
	  sed 's/^/    /' "$$out"; \
	else cat "$$out"; exit $$status; fi

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the Go files
	@'$(GOLANGCI_LINT)' fmt

GENERATED := deploy docs/reference pkg/api

.PHONY: generate
generate: $(CONTROLLER_GEN) $(KUSTOMIZE) ## Make deep copies, CRDs, install.yaml, starter.yaml and reference pages anew
	@'$(CONTROLLER_GEN)' object paths=./pkg/api/...
	@'$(CONTROLLER_GEN)' crd paths=./pkg/api/... output:crd:dir=deploy/crd
	@'$(KUSTOMIZE)' build deploy/install >deploy/install.yaml.new && mv deploy/install.yaml.new deploy/install.yaml
	@'$(KUSTOMIZE)' build deploy/starter >deploy/starter.yaml.new && mv deploy/starter.yaml.new deploy/starter.yaml
	@go run ./docs/internal/generate

.PHONY: verify-generate
verify-generate: ## Fail when generate would change anything
	@state() { git diff HEAD -- $(GENERATED); git ls-files --others --exclude-standard -- $(GENERATED) | xargs -r sha256sum; }; \
	before=$$(state); $(MAKE) generate; after=$$(state); \
	if [ "$$before" != "$$after" ]; then \
	  diff <(echo "$$before") <(echo "$$after") || true; \
	  echo 'generated files are not what make generate makes of this tree: commit what it has just written'; exit 1; \
	fi

##@ Build

.PHONY: build
build: ## Build bin/kubectl-valkey and bin/manager
	@$(GO_BUILD) -o bin/kubectl-valkey ./cmd/kubectl-valkey
	@GOOS=linux $(GO_BUILD) -o bin/manager ./cmd/manager

.PHONY: image
image: build ## Build dist/manager-image.tar, no Docker needed
	@mkdir -p dist
	@go run ./deploy/image --binary bin/manager --arch "$$(go env GOARCH)" --tag '$(IMAGE)' --out dist/manager-image.tar
	@echo "dist/manager-image.tar holds the image $(IMAGE) for linux/$$(go env GOARCH)"

ALL_PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
PLATFORMS ?= $(ALL_PLATFORMS)
MANAGER_ARCHES ?= amd64 arm64
# Where a release goes; the tests make it twice.
RELEASE ?= dist/release

.PHONY: release
release: $(KUSTOMIZE) $(CYCLONEDX) ## Build what a release holds into dist/release
	@rm -rf '$(RELEASE)' '$(RELEASE).stage'; mkdir -p '$(RELEASE)' '$(RELEASE).stage'
	@go build -o '$(RELEASE).stage/pack' ./deploy/release; go build -o '$(RELEASE).stage/image' ./deploy/image
	@for platform in $(PLATFORMS); do \
	  os=$${platform%/*}; arch=$${platform#*/}; stage='$(RELEASE).stage'/$$os-$$arch; mkdir -p $$stage; exe=; [ $$os != windows ] || exe=.exe; \
	  echo "kubectl-valkey for $$platform"; \
	  GOOS=$$os GOARCH=$$arch $(GO_BUILD) -o $$stage/kubectl-valkey$$exe ./cmd/kubectl-valkey; \
	  '$(RELEASE).stage/pack' archive --date '$(DATE)' --out '$(RELEASE)'/kubectl-valkey_$(VERSION)_$${os}_$$arch.tar.gz $$stage/kubectl-valkey$$exe LICENSE; \
	done
	@for arch in $(MANAGER_ARCHES); do \
	  echo "manager image for linux/$$arch"; mkdir -p '$(RELEASE).stage'/manager-$$arch; \
	  GOOS=linux GOARCH=$$arch $(GO_BUILD) -o '$(RELEASE).stage'/manager-$$arch/manager ./cmd/manager; \
	  '$(RELEASE).stage/image' --binary '$(RELEASE).stage'/manager-$$arch/manager --arch $$arch --tag '$(IMAGE)' --out '$(RELEASE)'/manager-image_$(VERSION)_linux_$$arch.tar; \
	done
	@stage='$(RELEASE).stage'; plugin=$$(ls $$stage/$(subst /,-,$(firstword $(PLATFORMS)))/kubectl-valkey*); manager=$$stage/manager-$(firstword $(MANAGER_ARCHES))/manager; \
	for program in "$$plugin" "$$manager"; do \
	  name=$$(basename "$$program" .exe); echo "SBOM of $$name"; \
	  '$(CYCLONEDX)' bin -json -noserial -notimestamp -std -version '$(VERSION)' -output '$(RELEASE)'/$${name}_$(VERSION).cdx.json "$$program" 2>$$stage/sbom.log || { cat $$stage/sbom.log; exit 1; }; \
	done
	@printf '%s\n' "resources: [$$(realpath --relative-to='$(RELEASE).stage' deploy/install)]" \
	  'images: [{name: kubectl-valkey/manager, newTag: "$(VERSION)"}]' \
	  'labels: [{pairs: {app.kubernetes.io/version: "$(VERSION)"}}]' >'$(RELEASE).stage'/kustomization.yaml
	@'$(KUSTOMIZE)' build --load-restrictor LoadRestrictionsNone '$(RELEASE).stage' >'$(RELEASE)'/install.yaml
	@'$(KUSTOMIZE)' build deploy/crd >'$(RELEASE)'/crds.yaml
	@cp deploy/starter.yaml LICENSE '$(RELEASE)'/
	@'$(RELEASE).stage/pack' krew $(if $(filter-out $(PLATFORMS),$(ALL_PLATFORMS)),--incomplete) --archives '$(RELEASE)' --version '$(VERSION)' --out '$(RELEASE)'/valkey.yaml
	@'$(RELEASE).stage/pack' checksums '$(RELEASE)'; rm -rf '$(RELEASE).stage'; ls -l '$(RELEASE)'

.PHONY: test-release
test-release: $(KUSTOMIZE) $(CYCLONEDX) $(KREW) ## Build the release twice, compare it, install the plugin with krew
	@mkdir -p '$(LOGS)/$@'; kubectl=$$(command -v kubectl || echo "$$($(CLUSTER) assets)/kubectl"); \
	RELEASE_KREW='$(KREW)' RELEASE_KUBECTL="$$kubectl" go test -tags release -count=1 -timeout 60m $(run_flag) ./e2e/release | tee '$(LOGS)/$@/go-test.log'
