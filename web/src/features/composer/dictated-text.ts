// The text of a field while speech is added to it.

/** After these, and at the beginning, no space separates what is added. */
const withoutSpace = /(?:^|[\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}、。！？])$/u;

/** Returns a text with speech at its end. */
export function withSpeech(text: string, speech: string): string {
  const added = speech.trim();
  return added === "" ? text : `${text}${withoutSpace.test(text) ? "" : " "}${added}`;
}

/** Adds the results of a recognition to a text that the user may change at the same time. */
export class DictatedText {
  private base: string;
  private written: string;
  private seen = 0; // pieces in written
  private kept = 0; // pieces in base

  constructor(text: string) {
    this.base = this.written = text;
  }

  /**
   * Returns the text with what was understood. current: the text as it is now. pieces: all results since the beginning, the
   * last ones of which may still change.
   */
  with(current: string, pieces: readonly string[]): string {
    if (current !== this.written) {
      // The user has changed it: what was added until then is the user's text now.
      this.base = current;
      this.kept = this.seen;
    }
    this.seen = pieces.length;
    this.written = withSpeech(this.base, pieces.slice(this.kept).join(" ").replace(/\s+/g, " "));
    return this.written;
  }
}
