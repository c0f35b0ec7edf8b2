// Settings: the instructions of the account, which the model gets in every turn.
import { useQuery } from "@tanstack/react-query";
import { api, body } from "../../api/client";
import { refetchInAllTabs } from "../../api/queries";
import { instructionsQuery } from "./queries";
import { Instructions } from "../../controls/instructions";
import { NotLoaded } from "../../controls/not-loaded";
import { instructionMessages } from "../../messages/instructions";
import { useMessages } from "../../messages/localization";

const put = (content: string, version: number) =>
  body(
    api.PUT("/account/instructions", {
      params: { header: { "If-Match": `"v${version}"` } },
      body: { content },
    }),
  );

export function AccountInstructions() {
  const text = useMessages(instructionMessages);
  const { data, isError, refetch } = useQuery(instructionsQuery);
  if (data === undefined)
    return isError ? <NotLoaded again={refetch}>{text("instructions.not_loaded")}</NotLoaded> : null;
  return (
    <div className="py-3">
      <Instructions
        stored={data}
        label={text("instructions.title")}
        hint={text("instructions.hint")}
        placeholder={text("instructions.placeholder")}
        put={put}
        onPut={() => void refetchInAllTabs("instructions")}
      />
    </div>
  );
}
