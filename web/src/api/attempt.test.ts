import { describe, expect, test } from "vitest";
import { Refusal } from "./problem";
import { attemptOf, keepsKey } from "./attempt";

const keys = () => {
  let made = 0;
  return () => `key ${++made}`;
};
const refusal = (status: number, code = "unknown") => new Refusal(status, code, "", null, 0);

describe("the key of a request that creates something", () => {
  test("is the same for a repetition of the request", () => {
    const newKey = keys();
    const first = attemptOf("7 days", null, newKey);
    expect(attemptOf("7 days", first, newKey)).toBe(first);
  });

  test("is another one for another request", () => {
    const newKey = keys();
    const first = attemptOf("7 days", null, newKey);
    expect(attemptOf("30 days", first, newKey)).toEqual({ request: "30 days", key: "key 2" });
  });

  test("is kept while the resource may exist, or if the service did not consider the request", () => {
    for (const status of [0, 500, 503, 401, 403, 429]) expect(keepsKey(refusal(status)), `${status}`).toBe(true);
    expect(keepsKey(refusal(409, "idempotency_in_progress"))).toBe(true);
  });

  test("is not used again after a final refusal", () => {
    for (const status of [404, 422]) expect(keepsKey(refusal(status)), `${status}`).toBe(false);
    for (const code of ["conflict", "turn_in_progress", "too_many_shares"])
      expect(keepsKey(refusal(409, code)), code).toBe(false);
  });
});
