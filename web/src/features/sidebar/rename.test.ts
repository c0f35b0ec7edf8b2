import { afterEach, beforeEach, expect, test, vi } from "vitest";

vi.stubGlobal("location", { origin: "http://127.0.0.1", pathname: "/", protocol: "http:" });
vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => {} });
vi.stubGlobal("navigator", { locks: { request: () => Promise.resolve() } });
const toast = vi.hoisted(() => vi.fn());
vi.mock("../../controls/toast", () => ({ toast }));
const { api, Refusal } = await import("../../api/client");
const { cacheWithPending, queryClient } = await import("../../api/queries");
const { rename } = await import("./rename");

const t = ((key: string) => key) as never;
const tides = { conversation_id: "conv_1", title: "Tides", title_source: "user", version: 5 };
type Put = { params: { header: { "If-Match": string } }; body: { title: string } };

let stored: typeof tides;
/** The versions on which the requests were based. */
let versions: string[];
/** What becomes of the next request: refused, stored without a response, or overtaken by another device; null: it is answered. */
let failure: "refused" | "unanswered" | "overtaken" | null;

/** The service: a change of another version than the stored one is refused. */
beforeEach(() => {
  vi.stubGlobal("addEventListener", () => {});
  vi.stubGlobal("removeEventListener", () => {});
  versions = [];
  failure = null;
  vi.spyOn(api, "PUT").mockImplementation((async (_: string, { params, body }: Put) => {
    const failed = failure;
    failure = null;
    versions.push(params.header["If-Match"]);
    await Promise.resolve();
    if (failed === "refused") throw new Refusal(422, "invalid", "", null, 0);
    if (failed === "overtaken") stored = { ...stored, title: "Set elsewhere", version: stored.version + 1 };
    if (params.header["If-Match"] !== `"v${stored.version}"`)
      throw new Refusal(409, "stale_version", "", { current: { ...stored } } as never, 0);
    stored = { ...stored, title: body.title, title_source: "user", version: stored.version + 1 };
    if (failed === "unanswered") throw new Refusal(0, "unreachable", "", null, 0);
    return { data: stored };
  }) as never);
});

afterEach(() => {
  vi.restoreAllMocks();
  toast.mockClear();
});

/** The messages that were shown. */
const shown = () => toast.mock.calls.map(([message]) => message as string);

test("the last of several titles is stored, also if something else of the conversation has changed", async () => {
  stored = { ...tides, version: 6 };
  await Promise.all([rename(tides as never, "Ebb", t), rename({ ...tides, title: "Ebb" } as never, "Flow", t)]);
  expect(stored.title).toBe("Flow");
  expect(toast).not.toHaveBeenCalled();
});

test("a title that the service generated is overwritten, and one that was set elsewhere is kept", async () => {
  stored = { ...tides, title: "Generated", title_source: "auto", version: 6 };
  await rename(tides as never, "Ebb", t);
  expect(stored.title).toBe("Ebb");
  await rename({ ...tides, version: 6 } as never, "Flow", t);
  expect(stored.title).toBe("Ebb");
  expect(toast).toHaveBeenCalledOnce();
});

test("two quick changes cost one request each", async () => {
  stored = tides;
  await Promise.all([rename(tides as never, "Ebb", t), rename({ ...tides, title: "Ebb" } as never, "Flow", t)]);
  expect(versions).toEqual(['"v5"', '"v6"']);
  expect(stored.title).toBe("Flow");
});

test("a title after a refused one does not conflict with the stored one, also if something else has changed", async () => {
  stored = { ...tides, version: 6 };
  failure = "refused";
  await Promise.all([rename(tides as never, "Ebb", t), rename({ ...tides, title: "Ebb" } as never, "Flow", t)]);
  expect(stored.title).toBe("Flow");
  expect(shown()).toEqual(["pages.rename.failed"]);
});

test("a title that was stored without a response is no conflict for a later one, nor for its repetition", async () => {
  stored = tides;
  failure = "unanswered";
  await rename(tides as never, "Ebb", t);
  expect(stored.title).toBe("Ebb");
  await rename(tides as never, "Ebb", t);
  failure = "unanswered";
  await rename({ ...stored } as never, "Neap", t);
  await rename({ ...tides, title: "Ebb", version: 6 } as never, "Flow", t);
  expect(stored.title).toBe("Flow");
  expect(shown()).toEqual(["pages.rename.failed", "pages.rename.failed"]);
});

test("a title that was set elsewhere is kept, although a pending title hid it from the next one", async () => {
  stored = tides;
  const slow = rename(tides as never, "Ebb", t);
  const second = rename({ ...tides, title: "Ebb", version: 7 } as never, "Flow", t); // displayed: "Ebb" over the version of the other device
  failure = "overtaken"; // the second one
  await Promise.all([slow, second]);
  expect(stored.title).toBe("Set elsewhere");
  expect(shown()).toEqual(["pages.rename.conflict"]);
});

test("a title that was set elsewhere between two changes of this page is kept", async () => {
  stored = tides;
  const first = rename(tides as never, "Ebb", t);
  const second = rename({ ...tides, title: "Ebb" } as never, "Flow", t);
  failure = "overtaken"; // the second one: the first one is sent
  await first;
  await second;
  expect(stored.title).toBe("Set elsewhere");
  expect(shown()).toEqual(["pages.rename.conflict"]);
});

test("a refused title is reverted at once, also if something else of the conversation has changed meanwhile", async () => {
  queryClient.setQueryData(["conversation", "conv_1"], tides);
  stored = { ...tides, version: 7 };
  vi.mocked(api.PUT).mockImplementationOnce(() => {
    cacheWithPending(stored as never); // the response to another request
    expect(queryClient.getQueryData(["conversation", "conv_1"])).toMatchObject({ title: "Ebb", version: 7 });
    return Promise.reject(new Refusal(422, "invalid", "", null, 0));
  });
  await rename(tides as never, "Ebb", t);
  expect(queryClient.getQueryData(["conversation", "conv_1"])).toEqual(stored);
  queryClient.clear();
});
