// Locks of the browser that show other tabs of which artifacts this one has a text that is not saved. The browser releases them
// when the tab ends, however it ends. A tab waits for no answer of another one, which may be paused.

const prefix = "turnstone-edit/";

export class EditLocks {
  readonly #locks: Pick<LockManager, "request" | "query">;
  readonly #own = `${prefix}${crypto.randomUUID()}/`;
  readonly #releases = new Map<string, () => void>();

  constructor(locks: Pick<LockManager, "request" | "query">) {
    this.#locks = locks;
  }

  /** Holds the locks of these artifacts, and no others. */
  hold(artifacts: ReadonlySet<string>): void {
    for (const [artifact, release] of this.#releases) {
      if (artifacts.has(artifact)) continue;
      this.#releases.delete(artifact);
      release();
    }
    for (const artifact of artifacts) {
      if (this.#releases.has(artifact)) continue;
      const released = new Promise<void>((release) => this.#releases.set(artifact, release));
      // It is refused only while the page is left.
      this.#locks.request(this.#own + artifact, () => released).catch(() => {});
    }
  }

  /** Returns the artifacts whose locks other tabs hold. */
  async ofOtherTabs(): Promise<string[]> {
    const { held = [] } = await this.#locks.query();
    return held.flatMap(({ name = "" }) =>
      name.startsWith(prefix) && !name.startsWith(this.#own) ? [name.slice(this.#own.length)] : [],
    );
  }
}
