// Shares streams between the tabs of a browser. One tab leads: it alone opens connections, at most four, and forwards
// the events to the others, so that many tabs never use up the six HTTP/1.1 connections of an origin. When the leader
// closes, another tab takes over: every tab requests its turns again from the last sequence it has read, and the new
// leader continues the account's feed from the last cursor that it has heard of.
import type { TurnEvent } from "../generated/events";
import type { StreamDependencies } from "./event-stream";
import { followFeed, type FeedFollower, type FeedItem } from "./feed";
import { follow, type ConnectionState, type Follower, type LogEvent } from "./follow";

/** The number of connection slots for turns and research tasks, next to the feed. Further ones wait for a slot. */
const maxConnections = 3;

type TabMessage =
  | { kind: "leading" }
  | { kind: "want"; tab: string; turn: string; after: number }
  | { kind: "leave"; tab: string; turn: string }
  | { kind: "events"; turn: string; events: LogEvent[] }
  | { kind: "link"; turn: string; link: ConnectionState }
  | { kind: "want_feed" }
  | { kind: "items"; items: FeedItem[]; cursor: string }
  | { kind: "feed_open"; open: boolean };

/** The channel and the leader election of the tabs; tests replace them. */
export interface TabsDependencies extends StreamDependencies {
  channel: Pick<BroadcastChannel, "postMessage" | "addEventListener" | "removeEventListener">;
  /** Runs lead once this tab is elected leader; it stays the leader until the promise of lead settles. */
  elect(lead: () => Promise<void>, signal: AbortSignal): void;
}

interface Connection {
  /** The log contains the events after this sequence, for tabs that join later. */
  from: number;
  log: LogEvent[];
  link: ConnectionState;
  tabs: Set<string>;
  stop: AbortController | null; // null: waits for a slot, or has ended
  again: boolean; // requested again since the last request was sent, perhaps because of a sign-in
}

export class Tabs {
  readonly #tab = crypto.randomUUID();
  readonly #deps: TabsDependencies;
  readonly #stop = new AbortController();
  readonly #wanted = new Map<string, { follower: Follower<LogEvent>; after: number }>();
  readonly #connections = new Map<string, Connection>(); // used by the leader only
  #leads = false;
  #feed: FeedFollower | null = null;
  #cursor: string | null = null; // of the last item that this tab got
  #feedStop: AbortController | null = null; // used by the leader only; null: the feed is not followed
  #feedOpen = false;
  #feedAgain = false; // requested again since the feed was started, perhaps because of a sign-in

  constructor(deps: TabsDependencies) {
    this.#deps = deps;
    deps.channel.addEventListener("message", this.#onMessage);
    deps.elect(() => this.#lead(), this.#stop.signal);
  }

  /** Follows a turn or a research task after the sequence after, until the returned function is called. */
  follow<Event extends LogEvent = TurnEvent>(turn: string, after: number, follower: Follower<Event>): () => void {
    // The log of a turn has events of turns only, and that of a task has events of tasks only.
    const wanted = { follower: follower as Follower<LogEvent>, after };
    this.#wanted.set(turn, wanted);
    this.#broadcast({ kind: "want", tab: this.#tab, turn, after });
    return () => {
      if (this.#wanted.get(turn) !== wanted) return;
      this.#wanted.delete(turn);
      this.#broadcast({ kind: "leave", tab: this.#tab, turn });
    };
  }

  /** Follows the feed of the account for as long as this tab is open. */
  followFeed(follower: FeedFollower): void {
    this.#feed = follower;
    this.#broadcast({ kind: "want_feed" });
  }

  /** Requests every followed turn and the feed again, after a sign-in or when a leader has been elected. */
  followAllAgain(): void {
    if (this.#feed !== null) this.#broadcast({ kind: "want_feed" });
    for (const [turn, { after }] of this.#wanted) this.#broadcast({ kind: "want", tab: this.#tab, turn, after });
  }

  close(): void {
    for (const turn of this.#wanted.keys()) this.#broadcast({ kind: "leave", tab: this.#tab, turn });
    this.#wanted.clear();
    this.#stop.abort();
    this.#deps.channel.removeEventListener("message", this.#onMessage);
    for (const connection of this.#connections.values()) connection.stop?.abort();
    this.#feedStop?.abort();
  }

  /** Sends a message to the other tabs and handles it in this one. */
  #broadcast(message: TabMessage): void {
    this.#deps.channel.postMessage(message);
    this.#handle(message);
  }

  #onMessage = (message: Event): void => this.#handle((message as MessageEvent<TabMessage>).data);

  #handle(message: TabMessage): void {
    switch (message.kind) {
      case "leading":
        return this.followAllAgain();
      case "events": {
        const wanted = this.#wanted.get(message.turn);
        if (wanted === undefined) return;
        wanted.after = Math.max(wanted.after, message.events.at(-1)?.sequence ?? 0);
        return wanted.follower.events(message.events);
      }
      case "link":
        return this.#wanted.get(message.turn)?.follower.link(message.link);
      case "items":
        this.#cursor = message.cursor;
        return this.#feed?.items(message.items, message.cursor);
      case "feed_open":
        return this.#feed?.open(message.open);
      case "want_feed":
        if (this.#leads) void this.#serveFeed();
        return;
      case "want":
        if (this.#leads) this.#serve(message.tab, message.turn, message.after);
        return;
      case "leave":
        if (this.#leads) this.#release(message.tab, message.turn);
        return;
    }
  }

  async #lead(): Promise<void> {
    this.#leads = true;
    this.#broadcast({ kind: "leading" });
    await new Promise<void>((resolve) => this.#stop.signal.addEventListener("abort", () => resolve()));
  }

  /** Follows the feed until it cannot be followed, or reports whether it is open if it is followed already. */
  async #serveFeed(): Promise<void> {
    if (this.#feedStop !== null) {
      this.#feedAgain = true;
      return this.#broadcast({ kind: "feed_open", open: this.#feedOpen });
    }
    this.#feedAgain = false;
    const stop = (this.#feedStop = new AbortController());
    await followFeed(
      this.#cursor,
      {
        items: (items, cursor) => this.#broadcast({ kind: "items", items, cursor }),
        open: (open) => {
          this.#feedOpen = open;
          this.#broadcast({ kind: "feed_open", open });
        },
      },
      stop.signal,
      this.#deps,
    );
    this.#feedStop = null;
    // The response that ended the feed may belong to a request from before a sign-in.
    if (this.#feedAgain && !stop.signal.aborted) void this.#serveFeed();
  }

  #serve(tab: string, turn: string, after: number): void {
    const known = this.#connections.get(turn);
    const usable = known !== undefined && known.from <= after && known.link !== "signed_out" && known.link !== "stale";
    if (usable) {
      known.again = true;
      known.tabs.add(tab);
      const missing = known.log.filter((event) => event.sequence > after);
      if (missing.length > 0) this.#broadcast({ kind: "events", turn, events: missing });
      this.#broadcast({ kind: "link", turn, link: known.link });
      return;
    }
    known?.stop?.abort();
    this.#open(turn, after, new Set([...(known?.tabs ?? []), tab]));
    this.#connectWaiting();
  }

  #open(turn: string, after: number, tabs: Set<string>): void {
    this.#connections.set(turn, { from: after, log: [], link: "connecting", tabs, stop: null, again: false });
  }

  #release(tab: string, turn: string): void {
    const connection = this.#connections.get(turn);
    if (connection === undefined || !connection.tabs.delete(tab) || connection.tabs.size > 0) return;
    connection.stop?.abort();
    this.#connections.delete(turn);
    this.#connectWaiting();
  }

  /** Connects waiting turns while slots are free. */
  #connectWaiting(): void {
    let free = maxConnections - [...this.#connections.values()].filter((c) => c.stop !== null).length;
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
    await follow<LogEvent>(
      turn,
      connection.from,
      {
        events: (events) => {
          if (!current()) return;
          connection.log.push(...events);
          this.#broadcast({ kind: "events", turn, events });
        },
        link: (link) => {
          if (!current()) return;
          connection.link = link;
          this.#broadcast({ kind: "link", turn, link });
        },
      },
      stop.signal,
      this.#deps,
    );
    connection.stop = null;
    // The 401 may be the response to a request from before a sign-in.
    if (current() && connection.link === "signed_out" && connection.again)
      this.#open(turn, connection.from, connection.tabs);
    this.#connectWaiting();
  }
}

/** Connects this tab to the other tabs of the browser. */
export function joinTabs(): Tabs {
  const tabs = new Tabs({
    fetch: (...args) => fetch(...args),
    pause,
    channel: new BroadcastChannel("turnstone-turns"),
    elect: (lead, signal) => {
      void navigator.locks.request("turnstone-streams", { signal }, lead).catch(() => {});
    },
  });
  // A closed page releases its connection slots to the other tabs.
  window.addEventListener("pagehide", ({ persisted }) => persisted || tabs.close());
  return tabs;
}

/** Waits; ends early when the network is back or the visibility of the page changes. */
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
