import { describe, expect, test } from "vitest";
import { countsOf, emptySelection, extend, outcomeOf, prune, toggle, type Selection } from "./selection";

const order = ["a", "b", "c", "d", "e"];
const ids = (selection: Selection) => [...selection.ids].sort().join("");

describe("selecting rows", () => {
  test("a row is selected and deselected, and the others stay as they are", () => {
    const two = toggle(toggle(emptySelection, "a"), "c");
    expect(ids(two)).toBe("ac");
    expect(ids(toggle(two, "a"))).toBe("c");
    expect(ids(emptySelection)).toBe("");
  });

  test("a range has the rows between its ends, in both directions", () => {
    expect(ids(extend(toggle(emptySelection, "b"), order, "d"))).toBe("bcd");
    expect(ids(extend(toggle(emptySelection, "d"), order, "b"))).toBe("bcd");
  });

  test("another end replaces the range and keeps what was selected before it", () => {
    const before = toggle(toggle(emptySelection, "a"), "c");
    const long = extend(before, order, "e");
    expect(ids(long)).toBe("acde");
    expect(ids(extend(long, order, "d"))).toBe("acd");
    expect(ids(extend(long, order, "b"))).toBe("abc");
    expect(ids(extend(long, order, "c"))).toBe("ac");
  });

  test("a range without a start selects its end, and starts there", () => {
    const one = extend(emptySelection, order, "c");
    expect(ids(one)).toBe("c");
    expect(ids(extend(one, order, "e"))).toBe("cde");
  });

  test("a range to a row that cannot be selected changes nothing", () => {
    const one = toggle(emptySelection, "c");
    expect(extend(one, order, "x")).toEqual(one);
  });
});

describe("rows that leave the list", () => {
  const three = extend(toggle(emptySelection, "b"), order, "d");

  test("leave the selection", () => {
    expect(ids(prune(three, new Set(["a", "c"])))).toBe("bd");
    expect(ids(prune(three, new Set(order)))).toBe("");
  });

  test("do not come back with another range, and a removed start is none", () => {
    const rest = prune(three, new Set(["b"]));
    expect(rest.anchor).toBeNull();
    expect(ids(extend(rest, ["a", "c", "d", "e"], "e"))).toBe("cde");
  });

  test("change nothing if they are not selected", () => {
    expect(prune(three, new Set(["a", "e"]))).toBe(three);
  });
});

describe("the outcome of an action", () => {
  test("has the results and the refused items in their order, and their numbers", () => {
    const reason = new Error("refused");
    const outcome = outcomeOf(
      ["a", "b", "c"],
      [
        { status: "fulfilled", value: "A" },
        { status: "rejected", reason },
        { status: "fulfilled", value: "C" },
      ],
    );
    expect(outcome).toEqual({ done: ["A", "C"], refused: [{ item: "b", reason }] });
    expect(countsOf(outcome)).toEqual({ done: 2, count: 3, refused: 1 });
  });
});
