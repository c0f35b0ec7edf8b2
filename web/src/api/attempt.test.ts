import { describe, expect, test } from "vitest";
import { attempts } from "./attempt";
import { Refusal } from "./problem";

/** Returns a function that sends a request, which is refused unless the refusal is null, and returns its key. */
function sender() {
  let made = 0;
  const attempt = attempts(() => `key ${++made}`);
  return async (request: string, refusal: Refusal | null = null): Promise<string> => {
    let used = "";
    await attempt(request, async (key) => {
      used = key;
      if (refusal !== null) throw refusal;
    }).catch((error: unknown) => expect(error).toBe(refusal));
    return used;
  };
}
const refused = (status: number, code = "unknown") => new Refusal(status, code, "", null, 0);

describe("the key of a request that creates something", () => {
  test("is another one for another request, and for the next one after a success", async () => {
    const send = sender();
    expect(await send("7 days", refused(0))).toBe("key 1");
    expect(await send("30 days")).toBe("key 2");
    expect(await send("30 days")).toBe("key 3");
  });

  test("is kept while the resource may exist, or if the service did not consider the request", async () => {
    const refusals = [0, 500, 503, 401, 403, 429].map((status) => refused(status));
    for (const refusal of [...refusals, refused(409, "idempotency_in_progress")]) {
      const send = sender();
      expect([await send("share", refusal), await send("share")], `${refusal.status}`).toEqual(["key 1", "key 1"]);
    }
  });

  test("is not used again after a final refusal", async () => {
    const conflicts = ["conflict", "turn_in_progress", "too_many_shares"].map((code) => refused(409, code));
    for (const refusal of [refused(404), refused(422), ...conflicts]) {
      const send = sender();
      expect([await send("share", refusal), await send("share")], refusal.code).toEqual(["key 1", "key 2"]);
    }
  });
});
