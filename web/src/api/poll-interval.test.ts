import { expect, test } from "vitest";
import { pollInterval, type PageState } from "./poll-interval";

const minute = 60_000;
const page: PageState = { hidden: false, online: true, sinceUse: 0, sinceRunning: Infinity };

test("a page polls often while it is used and while a turn is live, and rarely when it is idle", () => {
  expect(pollInterval(page)).toBe(3_000);
  expect(pollInterval({ ...page, sinceRunning: 0 })).toBe(1_000);
  expect(pollInterval({ ...page, sinceRunning: 10_000 })).toBe(1_000); // the title may still be generated
  expect(pollInterval({ ...page, sinceRunning: minute })).toBe(3_000);
  expect(pollInterval({ ...page, sinceUse: 10 * minute })).toBe(20_000);
});

test("a hidden page polls only for the end of a turn, and an offline page never", () => {
  expect(pollInterval({ ...page, hidden: true })).toBe(Infinity);
  expect(pollInterval({ ...page, hidden: true, sinceRunning: 0 })).toBe(5_000);
  expect(pollInterval({ ...page, online: false, sinceRunning: 0 })).toBe(Infinity);
});
