import { createIntl } from "@formatjs/intl";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

vi.stubGlobal("location", { origin: "http://127.0.0.1", pathname: "/", protocol: "http:" });
vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => {} });
vi.stubGlobal("navigator", { locks: { request: () => Promise.resolve() } });
const toast = vi.hoisted(() => vi.fn());
vi.mock("../../controls/toast", () => ({ toast }));
const { storeInOrder } = await import("../../api/change-queue");
const { api, Refusal } = await import("../../api/client");
const { queryClient } = await import("../../api/queries");
const { optionOf, storeProfile } = await import("./profiles");

test("a profile is shown with its model and the size of its context, once they are known", () => {
  const intl = createIntl({ locale: "en", messages: {} });
  const t = (id: string, values?: object) => (values === undefined ? id : JSON.stringify(values));
  const able = {
    profile: "coding",
    model_id: "writer-2",
    pictures: true,
    tools: true,
    context_tokens: 128_000,
    max_output_tokens: 8_192,
    effort: null,
    fallback: false,
  } as const;
  expect(optionOf("coding", [able], { t, intl })).toEqual({
    value: "coding",
    label: '{"profile":"composer.profile.coding","model":"writer-2"}',
    hint: '{"hint":"composer.profile.coding.hint","tokens":"128K"}',
  });
  const unnamed = { value: "auto", label: "composer.profile.auto", hint: "composer.profile.auto.hint" };
  expect(optionOf("auto", [able], { t, intl })).toEqual(unnamed);
  expect(optionOf("auto", undefined, { t, intl })).toEqual(unnamed);
});

const t = ((key: string) => key) as never;
const tides = { conversation_id: "conv_1", title: "Tides", title_source: "user", profile: "auto", version: 5 };
type Put = { params: { header: { "If-Match": string } }; body: object; keepalive: boolean };

let stored: typeof tides;
let sent: [version: string, body: object, keepalive: boolean][];

/** The service: a change of another version than the stored one is refused. */
beforeEach(() => {
  vi.stubGlobal("addEventListener", () => {});
  vi.stubGlobal("removeEventListener", () => {});
  sent = [];
  vi.spyOn(api, "PUT").mockImplementation((async (_: string, { params, body, keepalive }: Put) => {
    const version = params.header["If-Match"];
    sent.push([version, body, keepalive]);
    await Promise.resolve();
    if (version !== `"v${stored.version}"`)
      throw new Refusal(409, "stale_version", "", { current: { ...stored } } as never, 0);
    stored = { ...stored, ...body, version: stored.version + 1 };
    return { data: stored };
  }) as never);
});

afterEach(() => {
  vi.restoreAllMocks();
  toast.mockClear();
});

test("a profile is displayed at once and stored after the changes before it, with the title that they have led to", async () => {
  stored = tides;
  queryClient.setQueryData(["conversation", "conv_1"], tides);
  const renamed = storeInOrder(tides as never, { title: "Ebb" }, async (base) => {
    stored = { ...stored, title: "Ebb", version: base.version + 1 };
    return stored as never;
  });
  const chosen = storeProfile(tides as never, "coding", t);
  expect(queryClient.getQueryData(["conversation", "conv_1"])).toMatchObject({ title: "Ebb", profile: "coding" });
  await Promise.all([renamed, chosen]);
  expect(sent).toEqual([['"v6"', { profile: "coding", title: "Ebb" }, true]]);
  queryClient.clear();
});

test("a profile is stored on a title that was set elsewhere; one that was set elsewhere is kept, and the user is asked", async () => {
  stored = { ...tides, title: "Set elsewhere", version: 7 };
  await storeProfile({ ...tides, title: "Old", version: 5 } as never, "coding", t);
  expect(stored).toMatchObject({ title: "Set elsewhere", profile: "coding" });
  await storeProfile(tides as never, "coding", t); // chosen in two windows
  expect(toast).not.toHaveBeenCalled();
  await storeProfile(tides as never, "balanced", t);
  expect(stored.profile).toBe("coding");
  expect(toast).toHaveBeenCalledOnce();
});

test("the last of several profiles counts", async () => {
  stored = { ...tides, title: "Set elsewhere", version: 7 };
  await Promise.all([
    storeProfile(tides as never, "coding", t),
    storeProfile({ ...tides, profile: "coding" } as never, "balanced", t),
  ]);
  expect(stored.profile).toBe("balanced");
  expect(toast).not.toHaveBeenCalled();
});
