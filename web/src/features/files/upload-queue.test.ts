import { describe, expect, test } from "vitest";
import { Refusal } from "../../api/problem";
import {
  declaredType,
  problemOfRefusal,
  problemOfUpload,
  reloaded,
  restarted,
  retryOf,
  startable,
  storedUploads,
  type ProblemKind,
  type QueuedUpload,
  type StoredUpload,
  type ServiceUpload,
} from "./upload-queue";

const upload = (id: string, state: QueuedUpload["state"], more: Partial<QueuedUpload> = {}): QueuedUpload => ({
  id,
  state,
  file: new File(["tides"], `${id}.txt`),
  name: `${id}.txt`,
  size: 5,
  to: { project: null, conversation: null },
  key: "key 1",
  uploadID: null,
  sent: 0,
  problem: null,
  ...more,
});

const refusal = (status: number, retryAfter = 0, field?: string) =>
  new Refusal(
    status,
    "code",
    "Detail.",
    field === undefined
      ? null
      : ({ errors: [{ field, message: "no" }] } as unknown as ConstructorParameters<typeof Refusal>[3]),
    retryAfter,
  );

const received = (state: ServiceUpload["state"], code?: string): ServiceUpload =>
  ({ state, failure: code === undefined ? null : { code, detail: "Detail." } }) as ServiceUpload;

const stopped = (kind: ProblemKind, more: Partial<QueuedUpload> = {}) =>
  upload("a", "stopped", { uploadID: "upl_1", sent: 3, problem: { kind, detail: "", retryAt: 0 }, ...more });

describe("the queue of uploads", () => {
  test("at most three are sent at a time, in the order in which they were added", () => {
    const ids = (list: QueuedUpload[]) => startable(list).map(({ id }) => id);
    expect(ids(["a", "b", "c", "d"].map((id) => upload(id, "waiting")))).toEqual(["a", "b", "c"]);
    expect(
      ids([upload("a", "sending"), upload("b", "stopped"), upload("c", "checking"), upload("d", "waiting")]),
    ).toEqual(["d"]);
    expect(
      ids([upload("a", "sending"), upload("b", "sending"), upload("c", "checking"), upload("d", "waiting")]),
    ).toEqual([]);
  });

  test("a reload continues what was interrupted, and without the file no new upload can be tried", () => {
    const list = [
      upload("a", "checking", { uploadID: "upl_1", sent: 5 }),
      upload("b", "waiting"),
      upload("c", "stopped", { problem: { kind: "malware", detail: "", retryAt: 0 } }),
      upload("d", "stopped", { problem: { kind: "interrupted", detail: "", retryAt: 0 } }),
      upload("e", "stopped", { problem: { kind: "connection_lost", detail: "", retryAt: 0 } }),
    ];
    const stored = JSON.parse(JSON.stringify(storedUploads(list))) as StoredUpload[];
    expect(stored.map(({ id }) => id)).toEqual(["a", "b", "d", "e"]);
    const again = reloaded(stored[0]!);
    expect(again).toMatchObject({
      id: "a",
      name: "a.txt",
      uploadID: "upl_1",
      file: null,
      state: "waiting",
      problem: null,
    });
    expect(startable([again])).toEqual([again]);
    const earlier = { ...stored[0], uploadID: undefined, session: "upl_1" } as unknown as StoredUpload;
    expect(reloaded(earlier).uploadID).toBe("upl_1");
    for (const kind of ["expired", "failed", "interrupted"] as const)
      expect(retryOf(stopped(kind, { file: null })), kind).toBeNull();
    expect(retryOf(stopped("unavailable", { file: null }))).toBe("continue");
  });

  test("another try continues the upload, or sends the file in a new one with another key", () => {
    const newKey = () => "key 2";
    for (const kind of ["connection_lost", "unavailable", "limited", "signed_out"] as const)
      expect(restarted(stopped(kind), newKey), kind).toMatchObject({
        state: "waiting",
        uploadID: "upl_1",
        key: "key 1",
        sent: 0,
        problem: null,
      });
    for (const kind of ["expired", "failed", "cancelled", "refused", "too_large"] as const)
      expect(restarted(stopped(kind), newKey), kind).toMatchObject({ state: "waiting", uploadID: null, key: "key 2" });
  });

  test("another try is not offered for a file that can never be accepted", () => {
    for (const kind of [
      "empty",
      "unsupported",
      "name",
      "malware",
      "content_mismatch",
      "encrypted",
      "unscannable",
      "unreadable",
    ] as const)
      expect(retryOf(stopped(kind)), kind).toBeNull();
  });
});

describe("why an upload has stopped", () => {
  test("by its state on the service", () => {
    const kind = (state: ServiceUpload["state"], code?: string) => problemOfUpload(received(state, code)).kind;
    expect(kind("rejected", "malware")).toBe("malware");
    expect(kind("rejected", "content_mismatch")).toBe("content_mismatch");
    expect(kind("rejected", "encrypted")).toBe("encrypted");
    expect(kind("rejected", "unscannable")).toBe("unscannable");
    expect(kind("failed", "scanner_unavailable")).toBe("failed");
    expect(kind("rejected", "a later reason")).toBe("failed");
    expect(kind("expired", "expired")).toBe("expired");
    expect(kind("cancelled")).toBe("cancelled");
  });

  test("by the status of the refused request", () => {
    const kind = (status: number) => problemOfRefusal(refusal(status), 0).kind;
    expect([0, 400, 401, 404, 408, 409, 410, 413, 415, 422, 429, 500, 503].map(kind)).toEqual([
      "connection_lost",
      "connection_lost",
      "signed_out",
      "refused",
      "connection_lost",
      "refused",
      "expired",
      "too_large",
      "unsupported",
      "refused",
      "limited",
      "unavailable",
      "unavailable",
    ]);
    expect(problemOfRefusal(refusal(422, 0, "body.filename"), 0).kind).toBe("name");
    expect(problemOfRefusal(new Error("unexpected"), 0).kind).toBe("refused");
  });

  test("with the text of the service for a limit, and the time of the next try", () => {
    expect(problemOfRefusal(refusal(413), 0)).toEqual({ kind: "too_large", detail: "Detail.", retryAt: 0 });
    expect(problemOfRefusal(refusal(429, 5_000), 1_000)).toEqual({
      kind: "limited",
      detail: "Detail.",
      retryAt: 6_000,
    });
    expect(problemOfRefusal(refusal(503, 1_000), 1_000).retryAt).toBe(2_000);
  });
});

test("only the type of a video is declared, so that it is refused before it is sent", () => {
  expect(declaredType({ name: "surf.mp4", type: "video/mp4" })).toBe("video/mp4");
  for (const [name, type] of [
    ["main.ts", "video/mp2t"],
    ["data.csv", "application/vnd.ms-excel"],
    ["notes", ""],
  ] as const)
    expect(declaredType({ name, type }), name).toBe("application/octet-stream");
});
