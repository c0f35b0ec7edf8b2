// The prompts of a project, on its page.
import type { Project } from "../../api/projects";
import { useMessages } from "../../messages/localization";
import { promptMessages } from "../../messages/prompts";
import { PromptList } from "./prompt-list";

export function ProjectPrompts({ project }: { project: Project }) {
  const t = useMessages(promptMessages);
  return (
    <section aria-labelledby="project-prompts" className="flex flex-col gap-3">
      <div>
        <h2 id="project-prompts" className="font-semibold">
          {t("pages.prompts.title")}
        </h2>
        <p className="text-sm text-soft">{t("prompts.project_hint")}</p>
      </div>
      <div className="rounded-lg border border-line bg-raised px-4">
        <PromptList project={project.project_id} readOnly={project.state !== "active"} />
      </div>
    </section>
  );
}
