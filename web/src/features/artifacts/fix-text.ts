// The message that asks the model to remove an error of an artifact.
import type { Localization } from "../../messages/localization";
import { fenced } from "../../parts/fences";
import type { Artifact } from "./queries";

/** The error is what the frame reports, which is not trusted. As code, it does not look like words of the user. */
export const fixText = (
  { title, version }: Pick<Artifact, "title" | "version">,
  error: string,
  t: Localization["t"],
): string => `${t("artifacts.fix.text", { title, version })}\n\n${fenced(error)}`;
