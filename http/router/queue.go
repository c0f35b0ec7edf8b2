package router

import (
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/exchange"
	"turnstone/http/route"
)

// heavyQueues are the queues of the requests whose policy is Heavy, by their bucket: a slow search does not hold up the lists.
func heavyQueues() map[route.Bucket]*exchange.Queues {
	return map[route.Bucket]*exchange.Queues{
		route.BucketReads: exchange.NewQueues(), route.BucketSearch: exchange.NewQueues(), route.BucketWrites: exchange.NewQueues(), route.BucketShares: exchange.NewQueues(),
	}
}

// enterQueue makes a heavy request wait for others of its account. It leaves the queue when its response starts, at the
// latest with the end of its handler.
func (rt *Router) enterQueue(ctx huma.Context, next func(huma.Context)) {
	policy := ctx.Operation().Metadata["policy"].(route.Policy)
	if !policy.Heavy {
		next(ctx)
		return
	}
	ex := stateOf(ctx.Context())
	leave, err := rt.heavy[policy.Bucket].Enter(ctx.Context(), ex.Caller.AccountID)
	if err != nil {
		rt.failOperation(ctx, err)
		return
	}
	ex.leaveQueue = sync.OnceFunc(leave)
	defer ex.leaveQueue()
	next(ctx)
}
