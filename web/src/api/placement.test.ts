import { expect, test } from "vitest";
import { placementOf } from "./outbox-message";

test("a new conversation is put into its project once, on the version that it was created with", () => {
  const fresh = { profile: null, project: "proj_1" };
  expect(placementOf(fresh, { version: 1, project_id: null })).toEqual({
    body: { project_id: "proj_1" },
    header: { "If-Match": '"v1"' },
  });
  expect(placementOf(fresh, { version: 2, project_id: "proj_1" })).toBeNull();
  expect(placementOf({ profile: null }, { version: 1, project_id: null })).toBeNull();
});
