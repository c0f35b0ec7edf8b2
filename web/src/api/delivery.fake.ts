// A browser and a service for tests of delivery: tabs that may die between any two steps, a network that loses requests
// and answers, and a service that counts what it has taken.
import { Delivery, type LetterStore } from "./delivery";
import { bodyOf, laneOf, type Letter } from "./letter";
import { Refusal } from "./problem";

export function letter(text: string, at: number, more: Partial<Letter> = {}): Letter {
  const whole = { key: `key-${text}`, account: "acct_1", conversationID: "conv_1", text, busy: "queue" as const, at, tried: null, patient: false, state: "sending" as const, trouble: null, began: null, parked: null, ...more };
  return { ...whole, body: bodyOf(whole) };
}

/** A service that takes each key once. */
export class FakeService {
  readonly taken: string[] = [];
  readonly conversations = new Set<string>();
  readonly #answers = new Map<string, { body: string; turn: string | null; followUp: string | null }>();
  /** An answer is being written: what comes meanwhile waits. */
  live = false;
  requests = 0;
  /** What goes wrong with the next request; null: nothing. */
  fault: () => "lost" | "unanswered" | "unavailable" | "limited" | "busy" | null = () => null;

  take(path: string, init: { method: string; body: string; headers: Record<string, string> }): Response {
    this.requests += 1;
    const fault = this.fault();
    if (fault === "lost") throw new Refusal(0, "unreachable", "", null, 0);
    if (fault === "unavailable") return problem(503, "unavailable");
    if (fault === "limited") return problem(429, "rate_limited");
    if (fault === "busy") return problem(409, "turn_in_progress");
    const answer = this.#handle(path, init);
    if (fault === "unanswered") throw new Refusal(0, "unreachable", "", null, 0);
    return answer;
  }

  #handle(path: string, { method, body, headers }: { method: string; body: string; headers: Record<string, string> }): Response {
    if (method === "PUT") {
      this.conversations.add(path.split("/").at(-1)!);
      return Response.json({}, { status: 201 });
    }
    const asked = JSON.parse(body) as { conversation_id?: string; client_steering_id?: string; input: { text: string }[] };
    const key = headers["Idempotency-Key"] ?? asked.client_steering_id!;
    const before = this.#answers.get(key);
    if (before !== undefined && before.body !== body) return problem(422, "idempotency_mismatch");
    if (before === undefined) {
      if (path === "/chat" && !this.conversations.has(asked.conversation_id!)) return problem(404, "not_found");
      this.taken.push(asked.input[0]!.text);
      const waits = path === "/chat" && this.live;
      this.#answers.set(key, { body, turn: waits ? null : `turn_${this.taken.length}`, followUp: waits ? `fu_${this.taken.length}` : null });
    }
    const { turn, followUp } = this.#answers.get(key)!;
    return turn === null ? Response.json({ follow_up_id: followUp }, { status: 202 }) : new Response("", { headers: { "X-Turn-Id": turn } });
  }
}

function problem(status: number, code: string): Response {
  return Response.json({ status, code, detail: "" }, { status, headers: status === 429 ? { "Retry-After": "5" } : {} });
}

interface Lock {
  holder: FakeTab;
  waiting: { tab: FakeTab; enter: () => void }[];
}

/** What the tabs of one browser share. */
export class FakeBrowser {
  readonly disk = new Map<string, Letter>();
  readonly locks = new Map<string, Lock>();
  readonly tabs = new Set<FakeTab>();
  /** The keys of all letters that were ever on disk. */
  readonly kept = new Set<string>();
  constructor(readonly service: FakeService) {}
}

const never = new Promise<never>(() => {});

/** One tab. fuse: the number of steps after which it is gone, as by a reload or a crash. */
export class FakeTab {
  readonly delivery: Delivery;
  readonly accepted: Letter[] = [];
  readonly pauses: number[] = [];
  account: string | null = "acct_1";
  now = 1_000_000;
  dead = false;
  readonly #working = new Set<Promise<void>>();
  #died: () => void = () => {};
  readonly #death = new Promise<void>((resolve) => (this.#died = resolve));

  constructor(
    readonly browser: FakeBrowser,
    private fuse = Infinity,
  ) {
    browser.tabs.add(this);
    this.delivery = new Delivery({
      store: this.#store(),
      alone: (name, work) => this.#alone(name, work),
      send: (path, init) => this.#step(() => browser.service.take(path, init)),
      pause: (ms) =>
        this.#step(() => {
          this.pauses.push(ms);
          this.now += ms;
        }),
      now: () => this.now,
      account: () => this.account,
      down: () => this.#step(() => ["persistence"]),
      changed: (_, changed) => {
        if (this.dead) return;
        if (changed?.state === "accepted") this.accepted.push(changed);
        for (const other of browser.tabs) if (other !== this && changed !== null && changed.state !== "accepted") other.work(other.delivery.tend(laneOf(changed)));
      },
    });
  }

  /** Remembers work, so that idle waits for it. */
  work(work: Promise<void>): void {
    const tracked: Promise<void> = work.finally(() => this.#working.delete(tracked));
    this.#working.add(tracked);
  }

  /** Resolves when the tab has nothing to do any more, or is gone. */
  async idle(): Promise<void> {
    while (!this.dead && this.#working.size > 0) await Promise.race([Promise.all(this.#working), this.#death]);
  }

  die(): void {
    this.dead = true;
    this.browser.tabs.delete(this);
    for (const lock of this.browser.locks.values()) lock.waiting = lock.waiting.filter(({ tab }) => tab !== this);
    for (const [name, lock] of this.browser.locks) if (lock.holder === this) this.#release(name, lock);
    this.#died();
  }

  /** Something that takes time; the tab may be gone before it, and after it, when it has had its effect. */
  async #step<T>(effect: () => T): Promise<T> {
    await this.#burn();
    const result = effect();
    await this.#burn();
    return result;
  }

  async #burn(): Promise<void> {
    await Promise.resolve();
    if (!this.dead && --this.fuse <= 0) this.die();
    if (this.dead) await never;
  }

  #store(): LetterStore {
    const { disk, kept } = this.browser;
    return {
      all: () => this.#step(() => [...disk.values()].map((one) => structuredClone(one))),
      get: (key) => this.#step(() => structuredClone(disk.get(key))),
      put: (one) =>
        this.#step(() => {
          disk.set(one.key, structuredClone(one));
          kept.add(one.key);
        }),
      replace: (one) =>
        this.#step(() => {
          if (!disk.has(one.key)) return false;
          disk.set(one.key, structuredClone(one));
          return true;
        }),
      remove: (key) => this.#step(() => void disk.delete(key)),
    };
  }

  async #alone(name: string, work: () => Promise<void>): Promise<void> {
    if (this.dead) await never;
    const { locks } = this.browser;
    const lock = locks.get(name);
    if (lock === undefined) locks.set(name, { holder: this, waiting: [] });
    else await new Promise<void>((enter) => lock.waiting.push({ tab: this, enter }));
    try {
      await work();
    } finally {
      if (!this.dead) this.#release(name, locks.get(name)!);
    }
  }

  #release(name: string, lock: Lock): void {
    const next = lock.waiting.shift();
    if (next === undefined) return void this.browser.locks.delete(name);
    lock.holder = next.tab;
    next.enter();
  }
}
