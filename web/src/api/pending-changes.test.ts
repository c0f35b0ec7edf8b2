import { expect, test } from "vitest";
import { whilePending, withPendingChanges } from "./pending-changes";

/** A request that is answered by a call. */
function request<T>() {
  let answer!: (value: T) => void;
  let refuse!: (reason: Error) => void;
  const answered = new Promise<T>((resolve, reject) => ([answer, refuse] = [resolve, reject]));
  return { answered, answer, refuse };
}

const response = { conversation_id: "conv_1", title: "Tides", pinned_at: null as string | null };

test("a change overrides responses until it is stored", async () => {
  const stored = request<typeof response>();
  const result = whilePending("conv_1", { pinned_at: "now" }, () => stored.answered);
  expect(withPendingChanges(response)).toEqual({ ...response, pinned_at: "now" });
  const other = { ...response, conversation_id: "conv_2" };
  expect(withPendingChanges(other)).toBe(other);
  stored.answer(response);
  expect(await result).toBe(response);
  expect(withPendingChanges(response)).toBe(response);
});

test("the last of several changes counts, also after an earlier one was refused", async () => {
  const first = request<typeof response>();
  const second = request<typeof response>();
  const refused = whilePending("conv_1", { title: "Ebb" }, () => first.answered);
  const kept = whilePending("conv_1", { title: "Flow" }, () => second.answered);
  expect(withPendingChanges(response).title).toBe("Flow");
  first.refuse(new Error("refused"));
  await expect(refused).rejects.toThrow("refused");
  expect(withPendingChanges(response).title).toBe("Flow");
  second.answer(response);
  await kept;
  expect(withPendingChanges(response)).toBe(response);
});

test("a change is sent after those before it, also after one was refused", async () => {
  const first = request<typeof response>();
  const sent: string[] = [];
  const send = (name: string, answered: Promise<typeof response>) => () => {
    sent.push(name);
    return answered;
  };
  const refused = whilePending("conv_1", { pinned_at: "now" }, send("pin", first.answered));
  const last = whilePending("conv_1", { pinned_at: null }, send("unpin", Promise.resolve(response)));
  const other = whilePending("conv_2", { pinned_at: null }, send("other", Promise.resolve(response)));
  await other;
  expect(sent).toEqual(["pin", "other"]);
  first.refuse(new Error("refused"));
  await expect(refused).rejects.toThrow("refused");
  await last;
  expect(sent).toEqual(["pin", "other", "unpin"]);
});

test("the response to a change does not revert the one after it", async () => {
  const pin = request<typeof response>();
  const rename = request<typeof response>();
  const pinned = whilePending("conv_1", { pinned_at: "now" }, () => pin.answered);
  const renamed = whilePending("conv_1", { title: "Ebb" }, () => rename.answered);
  pin.answer({ ...response, pinned_at: "then" });
  expect(await pinned).toEqual({ ...response, pinned_at: "then", title: "Ebb" });
  rename.answer({ ...response, pinned_at: "then", title: "Ebb" });
  await renamed;
});
