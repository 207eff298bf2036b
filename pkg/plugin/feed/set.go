package feed

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Set is a client.Reader that answers from feeds where it has one, and asks the
// API server for everything else. The options of a list are those of the feed's
// source: a Set follows exactly what one command shows.
type Set struct {
	client.Reader
	feeds   map[reflect.Type]*feed
	items   map[reflect.Type]*feed
	changed chan struct{}
}

var _ client.Reader = (*Set)(nil)

// Start follows the sources until ctx is done.
func Start(ctx context.Context, c client.WithWatch, clk clock.Clock, sources ...Source) (*Set, error) {
	s := &Set{
		Reader:  c,
		feeds:   map[reflect.Type]*feed{},
		items:   map[reflect.Type]*feed{},
		changed: make(chan struct{}, 1),
	}
	for _, source := range sources {
		item, err := itemType(source.List)
		if err != nil {
			return nil, err
		}
		f := newFeed(source, c, clk, s.signal)
		s.feeds[reflect.TypeOf(source.List)], s.items[item] = f, f
		go f.run(ctx)
	}
	return s, nil
}

// Changed gets a value after something changed; changes that nobody waited for
// are one.
func (s *Set) Changed() <-chan struct{} { return s.changed }

func (s *Set) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// List fills list from its feed, sorted by namespace and name.
func (s *Set) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	f, ok := s.feeds[reflect.TypeOf(list)]
	if !ok {
		return s.Reader.List(ctx, list, opts...)
	}
	objects, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(objects, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	items := make([]runtime.Object, len(objects))
	for i, o := range objects {
		items[i] = o
	}
	return meta.SetList(list, items)
}

// Get copies an object from its feed.
func (s *Set) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	f, ok := s.items[reflect.TypeOf(obj)]
	if !ok {
		return s.Reader.Get(ctx, key, obj, opts...)
	}
	objects, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if client.ObjectKeyFromObject(o) == key {
			reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(o).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: f.source.Resource}, key.Name)
}

// itemType is the pointer type of a list's items.
func itemType(list client.ObjectList) (reflect.Type, error) {
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil, fmt.Errorf("follow %T: %w", list, err)
	}
	return reflect.PointerTo(reflect.TypeOf(items).Elem().Elem()), nil
}
