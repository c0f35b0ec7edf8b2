import { describe, expect, test } from "vitest";
import { startBatch } from "./batch";
import { Refusal } from "./problem";

/** A service that counts the requests in flight and responds when the test lets it. */
function service() {
  const waiting: (() => void)[] = [];
  const sent: number[] = [];
  const send = (item: number) => {
    sent.push(item);
    return new Promise<string>((resolve) => waiting.push(() => resolve(`done ${item}`)));
  };
  return { sent, send, respond: () => waiting.shift()!(), pending: () => waiting.length };
}

/** Waits until the promises that are settled have had their effects. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("a batch of requests", () => {
  test("has at most four in flight, and returns the results in the order of the items", async () => {
    const { sent, send, respond, pending } = service();
    const { results } = startBatch([1, 2, 3, 4, 5, 6], send);
    await settled();
    expect(sent).toEqual([1, 2, 3, 4]);
    respond();
    await settled();
    expect(sent).toEqual([1, 2, 3, 4, 5]);
    while (pending() > 0) {
      respond();
      await settled();
    }
    expect((await results).map((result) => result.status === "fulfilled" && result.value)).toEqual(
      [1, 2, 3, 4, 5, 6].map((item) => `done ${item}`),
    );
  });

  test("is sent at once if the page ends", async () => {
    const { sent, send } = service();
    const { startAll } = startBatch([1, 2, 3, 4, 5, 6, 7], send);
    startAll();
    await settled();
    expect(sent).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  test("continues after a refusal, which is the result of its item", async () => {
    const refusal = new Refusal(422, "invalid", "", null, 0);
    const { results } = startBatch([1, 2, 3], (item) => (item === 2 ? Promise.reject(refusal) : Promise.resolve(item)));
    expect(await results).toEqual([
      { status: "fulfilled", value: 1 },
      { status: "rejected", reason: refusal },
      { status: "fulfilled", value: 3 },
    ]);
  });

  test("repeats a request that was refused for its rate after the pause of the service", async () => {
    const requests: number[] = [];
    const pauses: number[] = [];
    let limited = true;
    const send = (item: number) => {
      requests.push(item);
      if (limited && item === 2) return Promise.reject(new Refusal(429, "rate_limited", "", null, 1));
      return Promise.resolve(item);
    };
    const sleep = (duration: number) => {
      pauses.push(duration);
      limited = false;
      return new Promise<void>((resolve) => setTimeout(resolve, duration));
    };
    const { results } = startBatch([1, 2, 3], send, sleep);
    expect((await results).every(({ status }) => status === "fulfilled")).toBe(true);
    expect(requests).toEqual([1, 2, 3, 2]);
    expect(pauses.length).toBeGreaterThan(0);
  });

  test("does not wait longer than a minute", async () => {
    const refusal = new Refusal(429, "rate_limited", "", null, 3_600_000);
    const { results } = startBatch([1], () => Promise.reject(refusal));
    expect(await results).toEqual([{ status: "rejected", reason: refusal }]);
  });
});
