// The messages of the panel with artifacts. They are loaded with the parts that show them: the English messages of the catalog are part of the
// first load.
import ar from "./ar/artifact-panel.json";
import en from "./en/artifact-panel.json";
import ja from "./ja/artifact-panel.json";

export const artifactMessages: Readonly<Record<string, Readonly<Record<keyof typeof en, string>>>> = { en, ar, ja };
