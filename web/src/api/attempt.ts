// The Idempotency-Key for creating something with a request that the user repeats, for example a share or a copy of a
// branch: a repetition after a lost response must return what was created, and not create a second one. Pure.
import { Refusal } from "./problem";

/** A creating request that may have to be repeated. */
export interface Attempt {
  /** The conversation and the body, as JSON. A key belongs to one body. */
  readonly request: string;
  readonly key: string;
}

/** Returns the attempt for a request: the previous one if it was the same request, else one with a new key. */
export const attemptOf = (request: string, previous: Attempt | null, newKey: () => string): Attempt =>
  previous?.request === request ? previous : { request, key: newKey() };

/**
 * Whether a repetition after this refusal needs the same key: the resource may exist, or the service did not consider
 * the request. Any other refusal is final, and the service may have stored it under the key.
 */
export const keepsKey = (refusal: unknown): boolean =>
  refusal instanceof Refusal &&
  (refusal.outcomeUnknown || [401, 403, 429].includes(refusal.status) || refusal.code === "idempotency_in_progress");
