// The live turns of this tab, in a store of their own: streamed events do not touch the cache of server state, and only
// the row that shows a turn renders again. All events of one animation frame become one change of the store.
import { create } from "zustand";
import type { Message, TurnEvent, TurnID } from "../generated/events";
import type { ConnectionState } from "./follow";
import { foldTurn, openTurn, type TurnView } from "./fold";
import { joinTabs, type Tabs } from "./tabs";

export interface LiveTurn {
  view: TurnView;
  connection: ConnectionState;
  /** When the connection was lost (performance.now()); null while it is open. */
  lostAt: number | null;
}

interface Live {
  turns: Readonly<Record<string, LiveTurn>>;
}

export const useLive = create<Live>(() => ({ turns: {} }));

let tabs: Tabs | null = null;
const followers = new Map<string, { count: number; stop: () => void }>();
const pending = new Map<string, { events: TurnEvent[]; link: ConnectionState | null }>();
let scheduled = false;

/** The connection to the other tabs of the browser. */
export function sharedTabs(): Tabs {
  return (tabs ??= joinTabs());
}

/** Follows a turn while a component shows it, starting at its streaming message. Returns a function that stops. */
export function watchTurn(turn: TurnID, message: Message | undefined): () => void {
  const known = followers.get(turn);
  if (known !== undefined) {
    known.count += 1;
  } else {
    const view = useLive.getState().turns[turn]?.view ?? openTurn(turn, message);
    useLive.setState((live) => ({
      turns: { ...live.turns, [turn]: { view, connection: "connecting", lostAt: null } },
    }));
    const stop = sharedTabs().follow(turn, view.last, {
      events: (events) => pendingChanges(turn).events.push(...events),
      link: (link) => void (pendingChanges(turn).link = link),
    });
    followers.set(turn, { count: 1, stop });
  }
  return () => {
    const follower = followers.get(turn);
    if (follower === undefined || --follower.count > 0) return;
    follower.stop();
    followers.delete(turn);
  };
}

/** Removes a turn that has ended and is among the conversation's messages. */
export function forgetTurn(turn: string): void {
  useLive.setState((live) => {
    const { [turn]: _, ...turns } = live.turns;
    return { turns };
  });
}

/** Follows every turn again after a sign-in. */
export function followAgain(): void {
  tabs?.followAllAgain();
}

/** Returns the pending changes of a turn, which the next frame applies, and schedules them. */
function pendingChanges(turn: string): { events: TurnEvent[]; link: ConnectionState | null } {
  let entry = pending.get(turn);
  if (entry === undefined) pending.set(turn, (entry = { events: [], link: null }));
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
  useLive.setState((live) => {
    const turns = { ...live.turns };
    for (const [id, { events, link }] of batch) {
      const turn = turns[id];
      if (turn === undefined) continue;
      const lost = link === "waiting" || link === "unreachable";
      turns[id] = {
        view: foldTurn(turn.view, events),
        connection: link ?? turn.connection,
        lostAt:
          link === null || (lost && turn.lostAt !== null)
            ? turn.lostAt
            : lost
              ? performance.now()
              : link === "connecting"
                ? turn.lostAt
                : null,
      };
    }
    return { turns };
  });
}
