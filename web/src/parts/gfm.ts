// The parts of GitHub Flavored Markdown that answers use: bare links, task lists, tables and strikethrough. remark-gfm
// would add the serializer from tree to text, which the app does not need, and footnotes, which cannot span blocks that
// are parsed separately.
import { gfmAutolinkLiteralFromMarkdown } from "mdast-util-gfm-autolink-literal";
import { gfmStrikethroughFromMarkdown } from "mdast-util-gfm-strikethrough";
import { gfmTableFromMarkdown } from "mdast-util-gfm-table";
import { gfmTaskListItemFromMarkdown } from "mdast-util-gfm-task-list-item";
import { gfmAutolinkLiteral } from "micromark-extension-gfm-autolink-literal";
import { gfmStrikethrough } from "micromark-extension-gfm-strikethrough";
import { gfmTable } from "micromark-extension-gfm-table";
import { gfmTaskListItem } from "micromark-extension-gfm-task-list-item";

/** A remark plugin. */
export function gfm(this: { data(): object }): void {
  const data = this.data() as { micromarkExtensions?: object[]; fromMarkdownExtensions?: object[] };
  (data.micromarkExtensions ??= []).push(
    gfmAutolinkLiteral(),
    gfmStrikethrough({ singleTilde: false }),
    gfmTable(),
    gfmTaskListItem(),
  );
  (data.fromMarkdownExtensions ??= []).push(
    gfmAutolinkLiteralFromMarkdown(),
    gfmStrikethroughFromMarkdown(),
    gfmTableFromMarkdown(),
    gfmTaskListItemFromMarkdown(),
  );
}
