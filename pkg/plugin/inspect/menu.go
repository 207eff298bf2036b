package inspect

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// Menu is what a config resolves to at the moment.
type Menu struct {
	Resolved settings.Resolved
	Problems []settings.Problem
	// Err is why the menu could not be read.
	Err error
}

func fetchMenu(ctx context.Context, r client.Reader, config string) *Menu {
	catalog, err := LoadCatalog(ctx, r)
	if err != nil {
		return &Menu{Err: err}
	}
	resolved, problems := settings.Resolve(catalog, config)
	return &Menu{Resolved: resolved, Problems: problems}
}

// LoadCatalog reads all configs, images and roles that the platform team
// published.
func LoadCatalog(ctx context.Context, r client.Reader) (settings.Catalog, error) {
	catalog := settings.Catalog{
		Configs: map[string]*v1alpha1.ValkeyConfig{},
		Images:  map[string]*v1alpha1.ValkeyImage{},
		Roles:   map[string]*v1alpha1.ValkeyRole{},
	}
	var configs v1alpha1.ValkeyConfigList
	if err := kube.List(ctx, r, &configs, "valkeyconfigs"); err != nil {
		return catalog, err
	}
	var images v1alpha1.ValkeyImageList
	if err := kube.List(ctx, r, &images, "valkeyimages"); err != nil {
		return catalog, err
	}
	var roles v1alpha1.ValkeyRoleList
	if err := kube.List(ctx, r, &roles, "valkeyroles"); err != nil {
		return catalog, err
	}
	for i := range configs.Items {
		catalog.Configs[configs.Items[i].Name] = &configs.Items[i]
	}
	for i := range images.Items {
		catalog.Images[images.Items[i].Name] = &images.Items[i]
	}
	for i := range roles.Items {
		catalog.Roles[roles.Items[i].Name] = &roles.Items[i]
	}
	return catalog, nil
}
