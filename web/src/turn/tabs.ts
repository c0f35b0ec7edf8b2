// Shares streams between the tabs of a browser. One tab leads: it alone holds connections, at most four, and tells the
// others what comes, so that many tabs never use up the six connections that HTTP/1.1 has for an origin. When the leader
// goes, another tab takes over and everybody says again what it wants and how far it has read.
import type { TurnEvent } from "../generated/events";
import { follow, type Follower, type Link, type Surroundings } from "./follow";

/** How many turns are followed at once; the others wait for a place. */
const places = 4;

type Word =
  | { kind: "leading" }
  | { kind: "want"; tab: string; turn: string; after: number }
  | { kind: "leave"; tab: string; turn: string }
  | { kind: "events"; turn: string; events: TurnEvent[] }
  | { kind: "link"; turn: string; link: Link };

/** What the tabs share; tests give their own. */
export interface Meeting extends Surroundings {
  channel: Pick<BroadcastChannel, "postMessage" | "addEventListener" | "removeEventListener">;
  /** Runs lead once this tab is the only one that does; lead's promise holds the lead. */
  elect(lead: () => Promise<void>, signal: AbortSignal): void;
}

interface Connection {
  /** The log from here on is kept for tabs that come later. */
  from: number;
  log: TurnEvent[];
  link: Link;
  tabs: Set<string>;
  stop: AbortController | null; // null: waits for a place, or is over
}

export class Tabs {
  readonly #tab = crypto.randomUUID();
  readonly #meeting: Meeting;
  readonly #stop = new AbortController();
  readonly #wanted = new Map<string, { follower: Follower; after: number }>();
  readonly #connections = new Map<string, Connection>(); // of the leader
  #leads = false;

  constructor(meeting: Meeting) {
    this.#meeting = meeting;
    meeting.channel.addEventListener("message", this.#hear);
    meeting.elect(() => this.#lead(), this.#stop.signal);
  }

  /** Follows a turn behind after; ends when the returned function is called. */
  want(turn: string, after: number, follower: Follower): () => void {
    const wish = { follower, after };
    this.#wanted.set(turn, wish);
    this.#say({ kind: "want", tab: this.#tab, turn, after });
    return () => {
      if (this.#wanted.get(turn) !== wish) return;
      this.#wanted.delete(turn);
      this.#say({ kind: "leave", tab: this.#tab, turn });
    };
  }

  /** Asks again for everything wanted: after a sign-in. */
  again(): void {
    for (const [turn, { after }] of this.#wanted) this.#say({ kind: "want", tab: this.#tab, turn, after });
  }

  close(): void {
    for (const turn of this.#wanted.keys()) this.#say({ kind: "leave", tab: this.#tab, turn });
    this.#wanted.clear();
    this.#stop.abort();
    this.#meeting.channel.removeEventListener("message", this.#hear);
    for (const connection of this.#connections.values()) connection.stop?.abort();
  }

  /** Says a word to the other tabs and to this one. */
  #say(word: Word): void {
    this.#meeting.channel.postMessage(word);
    this.#take(word);
  }

  #hear = (message: Event): void => this.#take((message as MessageEvent<Word>).data);

  #take(word: Word): void {
    switch (word.kind) {
      case "leading":
        return this.again();
      case "events": {
        const wish = this.#wanted.get(word.turn);
        if (wish === undefined) return;
        wish.after = Math.max(wish.after, word.events.at(-1)?.sequence ?? 0);
        return wish.follower.events(word.events);
      }
      case "link":
        return this.#wanted.get(word.turn)?.follower.link(word.link);
      case "want":
        if (this.#leads) this.#serve(word.tab, word.turn, word.after);
        return;
      case "leave":
        if (this.#leads) this.#release(word.tab, word.turn);
        return;
    }
  }

  async #lead(): Promise<void> {
    this.#leads = true;
    this.#say({ kind: "leading" });
    await new Promise<void>((resolve) => this.#stop.signal.addEventListener("abort", () => resolve()));
  }

  #serve(tab: string, turn: string, after: number): void {
    const known = this.#connections.get(turn);
    const usable = known !== undefined && known.from <= after && known.link !== "signed_out" && known.link !== "stale";
    if (usable) {
      known.tabs.add(tab);
      const missing = known.log.filter((event) => event.sequence > after);
      if (missing.length > 0) this.#say({ kind: "events", turn, events: missing });
      this.#say({ kind: "link", turn, link: known.link });
      return;
    }
    known?.stop?.abort();
    this.#connections.set(turn, { from: after, log: [], link: "connecting", tabs: new Set([...(known?.tabs ?? []), tab]), stop: null });
    this.#fill();
  }

  #release(tab: string, turn: string): void {
    const connection = this.#connections.get(turn);
    if (connection === undefined || !connection.tabs.delete(tab) || connection.tabs.size > 0) return;
    connection.stop?.abort();
    this.#connections.delete(turn);
    this.#fill();
  }

  /** Gives free places to turns that wait for one. */
  #fill(): void {
    let free = places - [...this.#connections.values()].filter((c) => c.stop !== null).length;
    for (const [turn, connection] of this.#connections) {
      if (free <= 0) return;
      if (connection.stop !== null || connection.link !== "connecting") continue;
      free -= 1;
      void this.#connect(turn, connection);
    }
  }

  async #connect(turn: string, connection: Connection): Promise<void> {
    const stop = new AbortController();
    connection.stop = stop;
    const current = () => this.#connections.get(turn) === connection;
    await follow(
      turn,
      connection.from,
      {
        events: (events) => {
          if (!current()) return;
          connection.log.push(...events);
          this.#say({ kind: "events", turn, events });
        },
        link: (link) => {
          if (!current()) return;
          connection.link = link;
          this.#say({ kind: "link", turn, link });
        },
      },
      stop.signal,
      this.#meeting,
    );
    connection.stop = null;
    this.#fill();
  }
}

/** The tabs of this browser. */
export function meetTabs(): Tabs {
  const tabs = new Tabs({
    fetch: (...args) => fetch(...args),
    pause,
    channel: new BroadcastChannel("turnstone-turns"),
    elect: (lead, signal) => {
      void navigator.locks.request("turnstone-streams", { signal }, lead).catch(() => {});
    },
  });
  // A page that is gone for good watches nothing: its places are for the others.
  window.addEventListener("pagehide", ({ persisted }) => persisted || tabs.close());
  return tabs;
}

/** Waits, but no longer than until the network is back or the page is looked at again. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      window.removeEventListener("online", end);
      document.removeEventListener("visibilitychange", end);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    window.addEventListener("online", end);
    document.addEventListener("visibilitychange", end);
    signal.addEventListener("abort", end);
  });
}
