// Projects: their list, and the page of each.
import { lazyRouteComponent } from "@tanstack/react-router";

export { NewProjectDialog, Projects } from "./projects";

export const ProjectPage = lazyRouteComponent(() => import("./project"), "ProjectPage");
