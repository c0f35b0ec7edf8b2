// Brings letters to the service, each exactly once, however often the page reloads, the network fails or another tab does
// the same. Order is the promise: a letter is kept before it is sent, sent with its key until it is answered, and let go
// only then. Of each lane one tab sends at a time; the others stand by and take over when it goes away.
import type { Schemas } from "./client";
import { judge, laneOf, outlivedItsKey, restOf, troubleOf, type Letter } from "./letter";
import { problemOf, Refusal } from "./problem";

/** Where letters are kept; shared by the tabs of a browser. */
export interface LetterStore {
  all(): Promise<Letter[]>;
  get(key: string): Promise<Letter | undefined>;
  put(letter: Letter): Promise<void>;
  /** Puts a letter in place of what is kept under its key; false when nothing is, because it was taken back. */
  replace(letter: Letter): Promise<boolean>;
  remove(key: string): Promise<void>;
}

/** What delivery needs of its surroundings; tests give their own. */
export interface Post {
  store: LetterStore;
  /** Runs work while nobody else in this browser does the same; waits until then. */
  alone(name: string, work: () => Promise<void>): Promise<void>;
  /** Throws a Refusal when no answer came. */
  send(path: string, init: { method: string; body: string; headers: Record<string, string> }): Promise<Response>;
  /** Waits; ends early when trying again has become worth it, or this letter was changed. */
  pause(ms: number, key: string): Promise<void>;
  now(): number;
  /** Who is signed in; null: nobody. */
  account(): string | null;
  /** The parts of the service that are down, for who asks why. */
  down(): Promise<readonly string[]>;
  /** A letter has changed; null: it is gone. Told to every tab. */
  changed(key: string, letter: Letter | null): void;
}

/** Its key is forgotten, and nobody can say whether it has arrived. */
const unknownEnd = new Refusal(0, "outcome_unknown", "", null, 0);

export class Delivery {
  readonly #post: Post;
  readonly #lanes = new Map<string, { again: boolean }>();

  constructor(post: Post) {
    this.#post = post;
  }

  /** Keeps a letter, then sends it. */
  async take(letter: Letter): Promise<void> {
    await this.#post.store.put(letter);
    this.#post.changed(letter.key, letter);
    await this.tend(laneOf(letter));
  }

  /** Goes on with everything that an earlier page, or another tab, has left. */
  async resume(): Promise<void> {
    const letters = await this.#post.store.all();
    await Promise.all([...new Set(letters.map(laneOf))].map((lane) => this.tend(lane)));
  }

  /** Sends what waits in a lane. Resolves when nothing does. */
  async tend(lane: string): Promise<void> {
    const running = this.#lanes.get(lane);
    if (running !== undefined) {
      running.again = true;
      return;
    }
    const mine = { again: true };
    this.#lanes.set(lane, mine);
    try {
      while (mine.again) {
        mine.again = false;
        await this.#post.alone(`turnstone-lane/${lane}`, () => this.#empty(lane));
      }
    } finally {
      this.#lanes.delete(lane);
    }
  }

  async #empty(lane: string): Promise<void> {
    for (;;) {
      const due = (await this.#post.store.all())
        .filter((letter) => laneOf(letter) === lane && letter.state !== "refused" && letter.account === this.#post.account())
        .sort((a, b) => a.at - b.at)[0];
      if (due === undefined) return;
      await this.#deliver(due.key);
    }
  }

  /** Sends one letter until it is answered, refused, taken back, or its account is no longer the one that is signed in. */
  async #deliver(key: string): Promise<void> {
    for (let failures = 0; ; failures++) {
      const kept = await this.#post.store.get(key);
      if (kept === undefined || kept.state === "refused" || kept.account !== this.#post.account()) return;
      const rest = restOf(kept, this.#post.now());
      if (rest > 0) {
        await this.#post.pause(rest, key);
        continue;
      }
      if (outlivedItsKey(kept, this.#post.now())) {
        await this.#keep({ ...kept, state: "refused", trouble: troubleOf(unknownEnd, 0) });
        return;
      }
      const letter: Letter = { ...kept, state: "sending", tried: kept.tried ?? this.#post.now() };
      if (!(await this.#keep(letter))) return;
      try {
        if (letter.fresh !== undefined) await this.#open(letter, letter.fresh);
        const became = await this.#ask(letter);
        await this.#post.store.remove(key);
        this.#post.changed(key, { ...letter, state: "accepted", trouble: null, ...became });
        return;
      } catch (refusal) {
        if (!(refusal instanceof Refusal)) throw refusal;
        if (!(await this.#refused(letter, refusal, failures))) return;
      }
    }
  }

  /** Makes the conversation of a letter. */
  async #open(letter: Letter, fresh: NonNullable<Letter["fresh"]>): Promise<void> {
    const answer = await this.#post.send(`/conversations/${letter.conversationID}`, {
      method: "PUT",
      body: JSON.stringify({ profile: fresh.profile }),
      headers: { "Content-Type": "application/json" },
    });
    // 409: it is there already, and has gone its own way.
    if (!answer.ok && answer.status !== 409) throw await problemOf(answer);
    void answer.body?.cancel();
    const { fresh: _, ...opened } = letter;
    await this.#keep(opened);
  }

  /** The turn that the letter began, or the follow-up that it became; neither when it steers. */
  async #ask(letter: Letter): Promise<Pick<Letter, "began" | "parked">> {
    const steers = letter.turn !== undefined;
    const answer = await this.#post.send(steers ? "/chat/steering" : "/chat", {
      method: "POST",
      body: letter.body,
      headers: { "Content-Type": "application/json", ...(steers ? {} : { Accept: "text/event-stream", "Idempotency-Key": letter.key }) },
    });
    if (!answer.ok) throw await problemOf(answer);
    if (answer.status === 202 && !steers) {
      const item = (await answer.json().catch(() => null)) as Schemas["FollowUp"] | null; // it is accepted, whatever can be read
      return { began: null, parked: item?.follow_up_id ?? null };
    }
    // Who looks at the turn follows it by itself; the answer's body is nobody's.
    void answer.body?.cancel();
    return { began: answer.headers.get("X-Turn-Id"), parked: null };
  }

  /** True when it is to be tried again; the pause is over then. */
  async #refused(letter: Letter, refusal: Refusal, failures: number): Promise<boolean> {
    const verdict = judge(letter, refusal, failures, Math.random());
    if (!verdict.again) {
      // Who is refused has not been heard: the key is free again.
      await this.#keep({ ...letter, state: "refused", tried: null, trouble: troubleOf(refusal, this.#post.now()) });
      return false;
    }
    const down = refusal.status === 503 ? await this.#post.down() : [];
    if (!(await this.#keep({ ...letter, state: "waiting", trouble: troubleOf(refusal, this.#post.now(), verdict.wait, down) }))) return false;
    await this.#post.pause(verdict.wait, letter.key);
    return true;
  }

  /** Keeps what has changed of a letter; false when it was taken back meanwhile. */
  async #keep(letter: Letter): Promise<boolean> {
    if (!(await this.#post.store.replace(letter))) return false;
    this.#post.changed(letter.key, letter);
    return true;
  }
}
