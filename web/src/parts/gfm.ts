// What answers use of GitHub's Markdown: bare links, lists of tasks, tables, text struck through. remark-gfm would bring the
// way back from a tree to text along, which nobody takes here, and footnotes, which do not reach from block to block.
import { gfmAutolinkLiteralFromMarkdown } from "mdast-util-gfm-autolink-literal";
import { gfmStrikethroughFromMarkdown } from "mdast-util-gfm-strikethrough";
import { gfmTableFromMarkdown } from "mdast-util-gfm-table";
import { gfmTaskListItemFromMarkdown } from "mdast-util-gfm-task-list-item";
import { gfmAutolinkLiteral } from "micromark-extension-gfm-autolink-literal";
import { gfmStrikethrough } from "micromark-extension-gfm-strikethrough";
import { gfmTable } from "micromark-extension-gfm-table";
import { gfmTaskListItem } from "micromark-extension-gfm-task-list-item";

/** A plugin of remark. */
export function gfm(this: { data(): object }): void {
  const data = this.data() as { micromarkExtensions?: object[]; fromMarkdownExtensions?: object[] };
  (data.micromarkExtensions ??= []).push(gfmAutolinkLiteral(), gfmStrikethrough({ singleTilde: false }), gfmTable(), gfmTaskListItem());
  (data.fromMarkdownExtensions ??= []).push(gfmAutolinkLiteralFromMarkdown(), gfmStrikethroughFromMarkdown(), gfmTableFromMarkdown(), gfmTaskListItemFromMarkdown());
}
