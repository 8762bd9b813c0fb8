package task

import (
	"context"

	"github.com/afoot-go/afoot/notify"
)

// An Owner is the agent that started a task.
type Owner = notify.Owner

// Root is the zero Owner: the harness's main agent, which sees every task.
const Root = notify.Root

// ownerKey is the context key of a *lineage.
type ownerKey struct{}

// A lineage is an owner and the owners above it.
type lineage struct {
	owner  Owner
	parent *lineage // nil below the root
}

// WithOwner returns a context whose calls act for owner. The owner that ctx had
// until then is its parent. WithOwner(ctx, Root) acts for the root again.
func WithOwner(ctx context.Context, owner Owner) context.Context {
	parent := lineageOf(ctx)
	if parent != nil && parent.owner == owner {
		return ctx
	}
	if owner == Root {
		return context.WithValue(ctx, ownerKey{}, (*lineage)(nil))
	}
	return context.WithValue(ctx, ownerKey{}, &lineage{owner: owner, parent: parent})
}

// OwnerOf returns the owner that ctx acts for: the innermost WithOwner, or Root.
func OwnerOf(ctx context.Context) Owner {
	return lineageOf(ctx).current()
}

// current returns the owner of l, which is nil for the root.
func (l *lineage) current() Owner {
	if l == nil {
		return Root
	}
	return l.owner
}

func lineageOf(ctx context.Context) *lineage {
	l, _ := ctx.Value(ownerKey{}).(*lineage)
	return l
}

// A family is the tree of owners that a registry has seen: each but the root
// has a parent. The first place an owner was seen in stays its place.
type family map[Owner]Owner

// learn adds the owner of l and those above it.
func (f family) learn(l *lineage) {
	if l == nil {
		return
	}
	f.learn(l.parent)
	f.add(l.owner, l.parent.current())
}

// add places a new owner below parent, or below the root if parent is itself
// below the new one: owners that were moved may have got there before it.
func (f family) add(owner, parent Owner) {
	if _, known := f[owner]; known || owner == Root {
		return
	}
	if f.within(parent, owner) {
		parent = Root
	}
	f[owner] = parent
}

// within reports whether owner is ancestor or below it. All are below the root.
func (f family) within(owner, ancestor Owner) bool {
	for owner != ancestor {
		if owner == Root {
			return false
		}
		owner = f[owner]
	}
	return true
}

// move puts the owners directly below from below to instead. One that to is
// itself within goes below from's own parent, so that no circle comes about.
func (f family) move(from, to Owner) {
	for owner, parent := range f {
		switch {
		case parent != from:
		case f.within(to, owner):
			f[owner] = f[from]
		default:
			f[owner] = to
		}
	}
}
