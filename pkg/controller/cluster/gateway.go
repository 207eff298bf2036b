package cluster

import (
	"context"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

func (r *Reconciler) observeGateway(context.Context, *observation) (objects.GatewayState, error) {
	return objects.GatewayState{}, nil
}

func (r *Reconciler) ensureRoutes(context.Context, *observation) (bool, error) { return false, nil }

func (o *observation) withdrawRoutes() string { return "" }
