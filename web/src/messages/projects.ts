// The messages of the page of a project. They are loaded with it: the English messages of the catalog are part of the first load.
import ar from "./ar/projects.json";
import en from "./en/projects.json";
import ja from "./ja/projects.json";

export type ProjectMessageKey = keyof typeof en;

export const projectMessages: Readonly<Record<string, Readonly<Record<ProjectMessageKey, string>>>> = { en, ar, ja };
