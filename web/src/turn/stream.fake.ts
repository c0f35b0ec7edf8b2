// A fake service that streams the events of turns, for tests of following. It records the connections.
import type { TurnEvent } from "../generated/events";

const encoder = new TextEncoder();

/** Encodes events as frames, as the service writes them. */
export function framesOf(events: readonly TurnEvent[]): Uint8Array {
  return encoder.encode(
    events.map((event) => `id: ${event.sequence}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""),
  );
}

interface Open {
  turn: string;
  sent: number;
  controller: ReadableStreamDefaultController<Uint8Array>;
}

export class FakeStreams {
  /** The events of each turn so far. A turn has ended if its last event is turn.finished. */
  readonly turns = new Map<string, TurnEvent[]>();
  readonly #open = new Set<Open>();
  /** The largest number of connections open at the same time. */
  maxOpen = 0;
  /** The requests: the turn, and the sequence after which its events were requested. */
  readonly requests: { turn: string; after: number }[] = [];

  get open(): number {
    return this.#open.size;
  }

  openFor(turn: string): number {
    return [...this.#open].filter((one) => one.turn === turn).length;
  }

  /** The items of the feed so far; the cursor of item n is n, from 1. */
  readonly #items: string[] = [];
  readonly #feeds = new Map<ReadableStreamDefaultController<Uint8Array>, number>();
  /** The cursors with which the feed was requested; null: none. */
  readonly feedRequests: (string | null)[] = [];

  get feeds(): number {
    return this.#feeds.size;
  }

  /** Appends an item to the feed and sends it to its connections. */
  report(type: string): void {
    this.#items.push(type);
    for (const controller of this.#feeds.keys()) this.#feedItems(controller);
  }

  #openFeed(cursor: string | null, signal?: AbortSignal | null): Response {
    this.feedRequests.push(cursor);
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#feeds.set(controller, Number(cursor ?? this.#items.length));
        signal?.addEventListener("abort", () => {
          if (this.#feeds.delete(controller)) controller.error(new Error("aborted"));
        });
        this.#feedItems(controller);
      },
    });
    return new Response(body);
  }

  #feedItems(controller: ReadableStreamDefaultController<Uint8Array>): void {
    const sent = this.#feeds.get(controller)!;
    this.#feeds.set(controller, this.#items.length);
    for (let n = sent; n < this.#items.length; n++) {
      const item = { type: this.#items[n], at: "2026-01-01T00:00:00.000Z" };
      controller.enqueue(encoder.encode(`id: ${n + 1}\nevent: ${item.type}\ndata: ${JSON.stringify(item)}\n\n`));
    }
  }

  fetch = (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const feed = /^\/events(?:\?after=(.+))?$/.exec(String(input));
    if (feed !== null) return Promise.resolve(this.#openFeed(feed[1] ?? null, init?.signal));
    const [, turn, after] = /turns\/(.+)\/events\?after=(\d+)$/.exec(String(input))!;
    this.requests.push({ turn: turn!, after: Number(after) });
    const events = this.turns.get(turn!);
    if (events === undefined)
      return Promise.resolve(Response.json({ status: 404, code: "not_found" }, { status: 404 }));
    const last = events.at(-1);
    if (last?.type === "turn.finished" && Number(after) >= last.sequence)
      return Promise.resolve(new Response(null, { status: 204 }));
    let mine: Open;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        mine = { turn: turn!, sent: Number(after), controller };
        this.#open.add(mine);
        this.maxOpen = Math.max(this.maxOpen, this.#open.size);
      },
      cancel: () => void this.#open.delete(mine),
    });
    init?.signal?.addEventListener("abort", () => this.#close(mine, true));
    this.#feed(mine!);
    return Promise.resolve(new Response(body, { headers: { "Content-Type": "text/event-stream" } }));
  };

  /** Appends events to a turn and sends them to its connections. */
  append(turn: string, events: readonly TurnEvent[]): void {
    this.turns.set(turn, [...(this.turns.get(turn) ?? []), ...events]);
    for (const open of this.#open) if (open.turn === turn) this.#feed(open);
  }

  #feed(open: Open): void {
    const due = this.turns.get(open.turn)!.filter((event) => event.sequence > open.sent);
    if (due.length === 0) return;
    open.sent = due.at(-1)!.sequence;
    open.controller.enqueue(framesOf(due));
    if (due.at(-1)!.type === "turn.finished") this.#close(open, false);
  }

  #close(open: Open, broken: boolean): void {
    if (!this.#open.delete(open)) return;
    if (broken) open.controller.error(new Error("aborted"));
    else open.controller.close();
  }
}
