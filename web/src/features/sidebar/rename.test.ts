import { afterEach, beforeEach, expect, test, vi } from "vitest";

vi.stubGlobal("location", { origin: "http://127.0.0.1", pathname: "/", protocol: "http:" });
vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => {} });
const toast = vi.hoisted(() => vi.fn());
vi.mock("../../controls/toast", () => ({ toast }));
const { api, Refusal } = await import("../../api/client");
const { rename } = await import("./rename");

const t = ((key: string) => key) as never;
const tides = { conversation_id: "conv_1", title: "Tides", title_source: "user", version: 5 };
type Put = { params: { header: { "If-Match": string } }; body: { title: string } };

let stored: typeof tides;

/** The service: a change of another version than the stored one is refused. */
beforeEach(() => {
  vi.spyOn(api, "PUT").mockImplementation((async (_: string, { params, body }: Put) => {
    await Promise.resolve();
    if (params.header["If-Match"] !== `"v${stored.version}"`)
      throw new Refusal(409, "stale_version", "", { current: { ...stored } } as never, 0);
    stored = { ...stored, title: body.title, title_source: "user", version: stored.version + 1 };
    return { data: stored };
  }) as never);
});

afterEach(() => {
  vi.restoreAllMocks();
  toast.mockClear();
});

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
