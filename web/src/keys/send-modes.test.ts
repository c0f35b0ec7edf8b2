import { expect, test } from "vitest";
import { secondMode } from "./send-modes";

test("the second key combination steers as the account wants, unless the default way already steers like that", () => {
  expect(secondMode("queue", "next_step")).toBe("steer");
  expect(secondMode("interrupt", "next_step")).toBe("steer");
  expect(secondMode("steer", "next_step")).toBe("queue");
  expect(secondMode("queue", "interrupt")).toBe("interrupt");
  expect(secondMode("interrupt", "interrupt")).toBe("queue");
  expect(secondMode("steer", "interrupt")).toBe("queue");
});
