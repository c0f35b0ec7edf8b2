import { createMemoryHistory } from "@tanstack/react-router";
import { expect, test } from "vitest";
import { closeOnBack, followBack } from "./back";

/** A history with the entries /start and /page, at the last one, and what was closed by Back. */
function opened() {
  const history = createMemoryHistory({ initialEntries: ["/start"] });
  history.push("/page");
  const closed: string[] = [];
  const open = (name: string) => {
    const release = closeOnBack(history, () => (closed.push(name), release()));
    return release;
  };
  return { history, closed, open };
}

test("Back closes what is in front, one after the other, and then leads to the page before", () => {
  const { history, closed, open } = opened();
  open("dialog");
  open("nested");
  history.back();
  expect(closed).toEqual(["nested"]);
  history.back();
  expect(closed).toEqual(["nested", "dialog"]);
  expect(history.location.pathname).toBe("/page");
  history.back();
  expect(history.location.pathname).toBe("/start");
});

test("after a dialog was closed otherwise, one Back leads to the page before", () => {
  const { history, closed, open } = opened();
  open("dialog")();
  history.back();
  expect([history.location.pathname, closed]).toEqual(["/start", []]);
  history.forward();
  expect(history.location.pathname).toBe("/page");
});

test("another dialog uses the entry of one that is closed", () => {
  const { history, closed, open } = opened();
  open("dialog")();
  const entries = history.length;
  open("other");
  expect(history.length).toBe(entries);
  history.back();
  expect([history.location.pathname, closed]).toEqual(["/page", ["other"]]);
});

test("Back after a link in a dialog leads to the page of the dialog, and then to the one before", () => {
  const { history, closed, open } = opened();
  const release = open("drawer");
  history.push("/linked");
  release();
  history.back();
  expect(history.location.pathname).toBe("/page");
  history.back();
  expect([history.location.pathname, closed]).toEqual(["/start", []]);
});

test("after a reload, Back passes over the entry of what was in front", () => {
  const history = createMemoryHistory({ initialEntries: ["/start"] });
  history.push("/page");
  history.push("/page", { inFront: 1 } as object);
  followBack(history);
  history.back();
  expect(history.location.pathname).toBe("/start");
  history.forward();
  expect([history.location.pathname, history.location.state]).toEqual([
    "/page",
    expect.not.objectContaining({ inFront: 1 }),
  ]);
});
