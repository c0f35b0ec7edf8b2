import { afterEach, beforeEach, expect, test, vi } from "vitest";

vi.stubGlobal("location", { origin: "http://127.0.0.1", pathname: "/", protocol: "http:" });
vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => {} });
vi.stubGlobal("navigator", { locks: { request: () => Promise.resolve() } });
vi.mock("../../controls/toast", () => ({ toast: () => {} }));
const { api, Refusal } = await import("../../api/client");
const { cacheWithPending, queryClient } = await import("../../api/queries");
const { putPlacement, setPinned } = await import("./placement");

const tides = { conversation_id: "conv_1", title: "Tides", title_source: "user", project_id: null, version: 5 };
type Put = { params: { header: { "If-Match": string } }; body: object; keepalive: boolean };

let stored: typeof tides;
let sent: [path: string, version: string, keepalive: boolean][];

/** The service: a change of another version than the stored one is refused. */
beforeEach(() => {
  vi.stubGlobal("addEventListener", () => {});
  vi.stubGlobal("removeEventListener", () => {});
  sent = [];
  vi.spyOn(api, "PUT").mockImplementation((async (path: string, { params, body, keepalive }: Put) => {
    const version = params.header["If-Match"];
    sent.push([path.split("/").at(-1)!, version, keepalive]);
    await Promise.resolve();
    if (version !== `"v${stored.version}"`)
      throw new Refusal(409, "stale_version", "", { current: { ...stored } } as never, 0);
    stored = { ...stored, ...body, version: stored.version + 1 };
    return { data: stored };
  }) as never);
});

afterEach(() => {
  vi.restoreAllMocks();
});

test("a conversation is pinned, moved and archived in this order, with one request each, which outlives the page", async () => {
  stored = tides;
  const changes = [{ pinned: true }, { project_id: "proj_1" }, { archived: true }];
  await Promise.all(changes.map((placement) => putPlacement(tides as never, placement)));
  expect(sent).toEqual([
    ["pin", '"v5"', true],
    ["project", '"v6"', true],
    ["archive", '"v7"', true],
  ]);
  expect(stored.project_id).toBe("proj_1");
});

test("a conversation is moved also if something else of it has changed, once", async () => {
  stored = { ...tides, title: "Set elsewhere", version: 7 };
  expect(await putPlacement(tides as never, { project_id: "proj_1" })).toMatchObject({
    project_id: "proj_1",
    version: 8,
  });
  expect(sent.map(([, version]) => version)).toEqual(['"v5"', '"v7"']);
});

test("a refused change is reverted at once, also if something else of the conversation has changed meanwhile", async () => {
  const before = { ...tides, pinned_at: null };
  const after = { ...before, title: "Set elsewhere", version: 7 };
  queryClient.setQueryData(["conversation", "conv_1"], before);
  vi.mocked(api.PUT).mockImplementationOnce(() => {
    cacheWithPending(after as never); // the response to another request
    return Promise.reject(new Refusal(422, "invalid", "", null, 0));
  });
  expect(await setPinned(before as never, true, ((key: string) => key) as never)).toBe(false);
  expect(queryClient.getQueryData(["conversation", "conv_1"])).toEqual(after);
  queryClient.clear();
});
