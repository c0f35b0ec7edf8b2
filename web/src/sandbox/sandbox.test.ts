import { expect, test } from "vitest";
import { frameAttributes } from "./sandbox";

test("a frame has scripts, but no origin and no focus that the user has not given", () => {
  expect(frameAttributes.sandbox.split(" ")).toEqual(["allow-scripts"]);
  expect(frameAttributes.allow.split("; ")).toEqual(["focus-without-user-activation 'none'"]);
});
