// Views of logs that grow, in a store of their own: streamed events do not touch the cache of server state, and only what
// shows a view renders again. All events of one animation frame become one change of the store.
import { create, type StoreApi, type UseBoundStore } from "zustand";
import type { ConnectionState, LogEvent } from "./follow";
import { joinTabs, type Tabs } from "./tabs";

export interface LiveView<View> {
  view: View;
  connection: ConnectionState;
  /** When the connection was lost (performance.now()); null while it is open. */
  lostAt: number | null;
}

interface Live<View> {
  byID: Readonly<Record<string, LiveView<View>>>;
}

interface Pending<Event> {
  events: Event[];
  link: ConnectionState | null;
}

export interface LiveStore<View> {
  use: UseBoundStore<StoreApi<Live<View>>>;
  /** Follows a log while a component shows it, from the given view on if it has none. Returns a function that stops. */
  watch(id: string, open: () => View): () => void;
  /** Removes a view. */
  forget(id: string): void;
}

let tabs: Tabs | null = null;

/** The connection to the other tabs of the browser. */
export function sharedTabs(): Tabs {
  return (tabs ??= joinTabs());
}

/** Follows every log again after a sign-in. */
export function followAgain(): void {
  tabs?.followAllAgain();
}

/** Returns a store of views into which events are folded. */
export function liveStore<View extends { last: number }, Event extends LogEvent>(
  fold: (view: View, events: readonly Event[]) => View,
): LiveStore<View> {
  const use = create<Live<View>>(() => ({ byID: {} }));
  const followers = new Map<string, { count: number; stop: () => void }>();
  const pending = new Map<string, Pending<Event>>();
  let scheduled = false;

  /** Returns the pending changes of a view, which the next frame applies, and schedules them. */
  function pendingOf(id: string): Pending<Event> {
    let entry = pending.get(id);
    if (entry === undefined) pending.set(id, (entry = { events: [], link: null }));
    if (!scheduled) {
      scheduled = true;
      // A hidden page gets no animation frames.
      if (document.hidden) setTimeout(flush, 200);
      else requestAnimationFrame(flush);
    }
    return entry;
  }

  function flush(): void {
    scheduled = false;
    const batch = [...pending];
    pending.clear();
    use.setState((live) => {
      const byID = { ...live.byID };
      for (const [id, { events, link }] of batch) {
        const one = byID[id];
        if (one === undefined) continue;
        const lost = link === "waiting" || link === "unreachable";
        byID[id] = {
          view: fold(one.view, events),
          connection: link ?? one.connection,
          lostAt:
            link === null || (lost && one.lostAt !== null)
              ? one.lostAt
              : lost
                ? performance.now()
                : link === "connecting"
                  ? one.lostAt
                  : null,
        };
      }
      return { byID };
    });
  }

  return {
    use,
    watch(id, open) {
      const known = followers.get(id);
      if (known !== undefined) {
        known.count += 1;
      } else {
        const view = use.getState().byID[id]?.view ?? open();
        use.setState((live) => ({ byID: { ...live.byID, [id]: { view, connection: "connecting", lostAt: null } } }));
        const stop = sharedTabs().follow<Event>(id, view.last, {
          events: (events) => pendingOf(id).events.push(...events),
          link: (link) => void (pendingOf(id).link = link),
        });
        followers.set(id, { count: 1, stop });
      }
      return () => {
        const follower = followers.get(id);
        if (follower === undefined || --follower.count > 0) return;
        follower.stop();
        followers.delete(id);
      };
    },
    forget: (id) =>
      use.setState((live) => {
        const { [id]: _, ...byID } = live.byID;
        return { byID };
      }),
  };
}
