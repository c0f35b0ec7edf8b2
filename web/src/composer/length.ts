// How long a text is for the service, which counts code points.
export const longestMessage = 100_000;
export const longestSteering = 16_000;

/** Code points of a text. Short texts, where nothing depends on it, are counted roughly: this runs at every key. */
export function lengthOf(text: string): number {
  if (text.length < longestSteering) return text.length;
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit >= 0xd800 && unit < 0xdc00) at++;
    count++;
  }
  return count;
}
