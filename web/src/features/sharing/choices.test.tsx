import { renderToString } from "react-dom/server";
import { expect, test } from "vitest";
import { Choices, choose } from "./choices";

test("nothing is chosen unless the user chooses it, and each choice has a description", () => {
  const shown = (chosen: readonly string[]) =>
    renderToString(
      <Choices
        legend="Artifacts to include"
        hint="Up to two."
        choices={[
          { id: "a", label: "Tides", hint: "Table, version 2" },
          { id: "b", label: "Winds", hint: "Code, version 1" },
        ]}
        chosen={chosen}
        most={2}
        onChange={() => {}}
      />,
    );
  const none = shown([]);
  expect(none.match(/type="checkbox"/g)).toHaveLength(2);
  expect(none).not.toContain("checked");
  for (const text of ["Artifacts to include", "Up to two.", "Tides", "Table, version 2"]) expect(none).toContain(text);
  expect(shown(["b"]).match(/checked=""/g)).toHaveLength(1);
});

test("choices keep their order, each once, and have a limit", () => {
  expect(choose(["a"], "b", true, 3)).toEqual(["a", "b"]);
  expect(choose(["a", "b"], "a", true, 3)).toEqual(["b", "a"]);
  expect(choose(["a", "b"], "a", false, 3)).toEqual(["b"]);
  expect(choose(["a", "b"], "c", true, 2)).toEqual(["a", "b"]);
});
