// Research tasks: the choices of the composer, the tasks of a conversation, and the citations of their reports.
import { deferred } from "../../controls/deferred";
import { CitationNumber } from "../../parts/citation-number";

export { idle, toggleResearch, useResearchMode } from "./mode";
export { isUsable } from "./budget";
export { reportQuery } from "./queries";
export { Tasks } from "./tasks";

/** Loads what starts a task. */
export const loadStart = () => import("./start");

const ignore = { onFailure: () => {} };

export const ResearchPanel = deferred(() => import("./research-panel").then((m) => m.ResearchPanel), ignore);
export const ReportDetails = deferred(() => import("./report-details").then((m) => m.ReportDetails), ignore);
export const Citation = deferred(() => import("./citation").then((m) => m.Citation), {
  Placeholder: CitationNumber,
  ...ignore,
});
export const ResearchNotifications = deferred(
  () => import("./research-notifications").then((m) => m.ResearchNotifications),
  ignore,
);
