// The live turns of this tab, in a store of their own: what streams never touches the cache of server state, and only
// the row that shows a turn is drawn anew. All events of one animation frame become one change.
import { create } from "zustand";
import type { Message, TurnEvent, TurnID } from "../generated/events";
import type { Link } from "./follow";
import { foldTurn, openTurn, type TurnView } from "./fold";
import { meetTabs, type Tabs } from "./tabs";

export interface LiveTurn {
  view: TurnView;
  link: Link;
  /** When the connection was lost, in milliseconds of the page's clock; null while it stands. */
  lostAt: number | null;
}

interface Live {
  turns: Readonly<Record<string, LiveTurn>>;
}

export const useLive = create<Live>(() => ({ turns: {} }));

let tabs: Tabs | null = null;
const followers = new Map<string, { count: number; stop: () => void }>();
const waiting = new Map<string, { events: TurnEvent[]; link: Link | null }>();
let scheduled = false;

/** Follows a turn while somebody looks at it; a streaming message is where it begins. Returns how to stop. */
export function watchTurn(turn: TurnID, message: Message | undefined): () => void {
  tabs ??= meetTabs();
  const known = followers.get(turn);
  if (known !== undefined) {
    known.count += 1;
  } else {
    const view = useLive.getState().turns[turn]?.view ?? openTurn(turn, message);
    useLive.setState((live) => ({ turns: { ...live.turns, [turn]: { view, link: "connecting", lostAt: null } } }));
    const stop = tabs.want(turn, view.last, {
      events: (events) => due(turn).events.push(...events),
      link: (link) => void (due(turn).link = link),
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

/** Forgets a turn that has ended and stands in the conversation's messages. */
export function forgetTurn(turn: string): void {
  useLive.setState((live) => {
    const { [turn]: _, ...turns } = live.turns;
    return { turns };
  });
}

/** Goes on with everything after a sign-in. */
export function followAgain(): void {
  tabs?.again();
}

/** The events of a turn that wait for the next frame. */
function due(turn: string): { events: TurnEvent[]; link: Link | null } {
  let entry = waiting.get(turn);
  if (entry === undefined) waiting.set(turn, (entry = { events: [], link: null }));
  if (!scheduled) {
    scheduled = true;
    // A hidden page gets no frames.
    if (document.hidden) setTimeout(flush, 200);
    else requestAnimationFrame(flush);
  }
  return entry;
}

function flush(): void {
  scheduled = false;
  const batch = [...waiting];
  waiting.clear();
  useLive.setState((live) => {
    const turns = { ...live.turns };
    for (const [id, { events, link }] of batch) {
      const turn = turns[id];
      if (turn === undefined) continue;
      const lost = link === "waiting";
      turns[id] = {
        view: foldTurn(turn.view, events),
        link: link ?? turn.link,
        lostAt: link === null || (lost && turn.lostAt !== null) ? turn.lostAt : lost ? performance.now() : link === "connecting" ? turn.lostAt : null,
      };
    }
    return { turns };
  });
}
