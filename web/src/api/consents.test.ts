import { afterAll, beforeEach, expect, test, vi } from "vitest";
import type { Consent, ShareFailure } from "./consents";

const address = "http://127.0.0.1";
const originals = { Request, fetch, navigator: globalThis.navigator };
vi.stubGlobal("location", { origin: address });
// Node has no document whose address completes a path.
vi.stubGlobal(
  "Request",
  class extends Request {
    constructor(input: RequestInfo | URL, init?: RequestInit) {
      super(typeof input === "string" ? new URL(input, address) : input, init);
    }
  },
);
// Other files run in the same process.
afterAll(() => Object.entries(originals).forEach(([name, value]) => vi.stubGlobal(name, value)));
const { locationQuery, removeLocation, shareLocation } = await import("./consents");
const { queryClient } = await import("./queries");

const consent: Consent = { source: "location", granted: true, precise: false, changed_at: null };
const stored = { latitude: 53.37, longitude: 7.21, accuracy_m: 830, precise: false, place: null };

/** The requests of a test with unsafe methods, and the options with which the position was read. */
let requests: { method: string; path: string; body: unknown }[];
let options: PositionOptions[];

/** Answers a request with a status and a body. */
let answer: (path: string) => [status: number, body: unknown];

/** What the browser returns for the position: its coordinates, or the code of its error. */
let position: { latitude: number; longitude: number; accuracy: number } | number;

beforeEach(() => {
  [requests, options] = [[], []];
  position = { latitude: 53.3671, longitude: 7.2063, accuracy: 40 };
  answer = () => [200, stored];
  queryClient.clear();
  vi.stubGlobal("navigator", {
    geolocation: {
      getCurrentPosition: (found: PositionCallback, failed: PositionErrorCallback, wanted: PositionOptions) => {
        options.push(wanted);
        if (typeof position === "number") failed({ code: position } as GeolocationPositionError);
        else found({ coords: position } as unknown as GeolocationPosition);
      },
    },
  });
  vi.stubGlobal("fetch", async (request: Request) => {
    const path = request.url.slice(address.length);
    if (path === "/auth/session") return Response.json({ csrf_token: "t", account: { account_id: "acct_1" } });
    if (request.method !== "GET")
      requests.push({ method: request.method, path, body: request.body && (await request.json()) });
    const [status, body] = answer(path);
    return status === 204 ? new Response(null, { status }) : Response.json(body, { status });
  });
});

const share = (agreed: Consent = consent, signal = new AbortController().signal) =>
  shareLocation("conv_1", agreed, signal);

const refuse =
  (status: number, code: string, more: object = {}) =>
  (path: string): [number, unknown] =>
    path.endsWith("/location-context") ? [status, { code, detail: "", ...more }] : [200, stored];

test("the position is sent with an expiry, and the answer is what the app shows", async () => {
  const before = Date.now();
  expect(await share()).toEqual(stored);
  expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    "PUT /conversations/conv_1/location-context",
  ]);
  const { expires_at, ...place } = requests[0]!.body as Record<string, unknown>;
  expect(place).toEqual({ latitude: 53.3671, longitude: 7.2063, accuracy_m: 40 });
  const hours = (Date.parse(String(expires_at)) - before) / 3_600_000;
  expect(hours).toBeGreaterThanOrEqual(23);
  expect(hours).toBeLessThan(24);
  expect(queryClient.getQueryData(locationQuery("conv_1").queryKey)).toEqual(stored);
});

test("the consent is stored before the position, and not without one", async () => {
  await share({ ...consent, granted: false });
  expect(requests.map(({ path, body }) => [path, (body as { granted?: boolean }).granted])).toEqual([
    ["/memory-sources/location/consent", true],
    ["/conversations/conv_1/location-context", undefined],
  ]);
  requests = [];
  position = 1;
  expect(await share({ ...consent, granted: false })).toBe("denied");
  expect(requests).toEqual([]);
});

test("the browser is asked for an exact position only with the consent to it", async () => {
  await share();
  await share({ ...consent, precise: true });
  expect(options.map(({ enableHighAccuracy }) => enableHighAccuracy)).toEqual([false, true]);
  expect(options[0]!.timeout).toBeGreaterThan(0);
});

test("a dialog that was closed while the browser looked for the position sends nothing", async () => {
  expect(await share({ ...consent, granted: false }, AbortSignal.abort())).toBeNull();
  expect(requests).toEqual([]);
});

test("an accuracy beyond the limit of the service is sent as the limit", async () => {
  position = { latitude: 1, longitude: 2, accuracy: 4_000_000 };
  await share();
  expect(requests[0]!.body).toMatchObject({ accuracy_m: 1_000_000 });
});

test.each<[code: number, failure: ShareFailure]>([
  [1, "denied"],
  [2, "unavailable"],
  [3, "timeout"],
])("the error %i of the browser is the failure %s", async (code, failure) => {
  position = code;
  expect(await share()).toBe(failure);
});

test.each<[failure: ShareFailure, status: number, code: string, more: object]>([
  ["consent", 409, "consent_required", {}],
  ["clock", 422, "invalid_request", { errors: [{ field: "body.expires_at", message: "must be in the future" }] }],
  ["refused", 409, "conversation_archived", {}],
  ["unknown", 503, "unavailable", {}],
])("a refusal is the failure %s (%i %s)", async (failure, status, code, more) => {
  answer = refuse(status, code, more);
  expect(await share()).toBe(failure);
  expect(queryClient.getQueryData(locationQuery("conv_1").queryKey)).toBeUndefined();
});

test("a conversation without a location, or without the consent to it, shares none; another error is an error", async () => {
  for (const [status, code] of [
    [404, "not_found"],
    [409, "consent_required"],
  ] as const) {
    answer = refuse(status, code);
    expect(await queryClient.fetchQuery({ ...locationQuery("conv_1"), staleTime: 0 })).toBeNull();
  }
  answer = refuse(403, "forbidden");
  await expect(queryClient.fetchQuery({ ...locationQuery("conv_1"), staleTime: 0 })).rejects.toThrow("403 forbidden");
});

test("a removed location is not shown any more; one that could not be removed is", async () => {
  const shown = () => queryClient.getQueryData(locationQuery("conv_1").queryKey);
  await share();
  answer = refuse(503, "unavailable");
  expect(await removeLocation("conv_1")).toBe(false);
  expect(shown()).toEqual(stored);
  answer = () => [204, null];
  expect(await removeLocation("conv_1")).toBe(true);
  expect(shown()).toBeNull();
});
