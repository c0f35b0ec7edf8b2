// Locks of the browser that show other tabs what this one has not stored. The browser releases them when the tab ends, however
// it ends. A tab waits for no answer of another one, which may be paused.

type Locks = Pick<LockManager, "request" | "query">;

const thisTab = crypto.randomUUID();

export class TabLocks {
  readonly #prefix: string;
  readonly #own: string;
  readonly #locks: () => Locks;
  readonly #releases = new Map<string, () => void>();

  /** kind names what is not stored; tests replace the locks and the tab. */
  constructor(kind: string, locks: () => Locks = () => navigator.locks, tab: string = thisTab) {
    this.#prefix = `turnstone-${kind}/`;
    this.#own = `${this.#prefix}${tab}/`;
    this.#locks = locks;
  }

  /** Holds the locks with these identifiers, and no others. */
  hold(wanted: ReadonlySet<string>): void {
    for (const [id, release] of this.#releases) {
      if (wanted.has(id)) continue;
      this.#releases.delete(id);
      release();
    }
    for (const id of wanted)
      if (!this.#releases.has(id)) this.holdUntil(new Promise<void>((release) => this.#releases.set(id, release)), id);
  }

  /** Holds a lock until a promise settles. */
  holdUntil(end: Promise<unknown>, id: string = crypto.randomUUID()): void {
    const ended = end.catch(() => {});
    // It is refused only while the page is left.
    this.#locks()
      .request(this.#own + id, () => ended)
      .catch(() => {});
  }

  /** Returns the identifiers of the locks that other tabs hold. */
  async ofOtherTabs(): Promise<string[]> {
    return (await this.#heldElsewhere()).map((name) => name.slice(this.#own.length));
  }

  /**
   * Waits until the other tabs have released the locks that they hold now, or a time in milliseconds is over. Returns how many they
   * still hold.
   */
  async awaitOtherTabs(limit: number): Promise<number> {
    const signal = AbortSignal.timeout(limit);
    const released = (await this.#heldElsewhere()).map((name) => this.#locks().request(name, { signal }, () => {}));
    return (await Promise.allSettled(released)).filter(({ status }) => status === "rejected").length;
  }

  async #heldElsewhere(): Promise<string[]> {
    const { held = [] } = await this.#locks().query();
    return held.flatMap(({ name = "" }) =>
      name.startsWith(this.#prefix) && !name.startsWith(this.#own) ? [name] : [],
    );
  }
}
