// The length of a text in code points, as the service counts it.
import { maxSteeringInput } from "../../generated/limits";
/** A longer pasted text becomes a file. */
export const longestPaste = 4_000;

/** Code points of a text. Runs on every key press, so texts below every limit are counted in UTF-16 units. */
export function lengthOf(text: string): number {
  if (text.length < maxSteeringInput) return text.length;
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit >= 0xd800 && unit < 0xdc00) at++;
    count++;
  }
  return count;
}
