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
  const stored = request<string>();
  const result = whilePending("conv_1", { pinned_at: "now" }, () => stored.answered);
  expect(withPendingChanges(response)).toEqual({ ...response, pinned_at: "now" });
  const other = { ...response, conversation_id: "conv_2" };
  expect(withPendingChanges(other)).toBe(other);
  stored.answer("done");
  expect(await result).toBe("done");
  expect(withPendingChanges(response)).toBe(response);
});

test("the last of several changes counts, also after an earlier one was refused", async () => {
  const first = request<void>();
  const second = request<void>();
  const refused = whilePending("conv_1", { title: "Ebb" }, () => first.answered);
  const kept = whilePending("conv_1", { title: "Flow" }, () => second.answered);
  expect(withPendingChanges(response).title).toBe("Flow");
  first.refuse(new Error("refused"));
  await expect(refused).rejects.toThrow("refused");
  expect(withPendingChanges(response).title).toBe("Flow");
  second.answer();
  await kept;
  expect(withPendingChanges(response)).toBe(response);
});
