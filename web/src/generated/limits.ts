// The limits of the service that the app applies too. Generated from package protocol by "make generate"; do not edit. Lengths
// are in characters (code points).

/** Of one message. */
export const maxInput = 100000;

/** Of one input that steers a turn or a research task. */
export const maxSteeringInput = 16000;

/** Files of one message. */
export const maxAttachments = 20;

/** Files of one draft. */
export const maxDraftFiles = 50;

/** Of the title of a conversation, and of the names of branches and projects. */
export const maxTitle = 200;

/** Of a title that is made from a message. */
export const maxProvisionalTitle = 60;

/** Of the text that a search looks for. */
export const maxQuery = 160;

/** Of the instructions of an account or of a project. */
export const maxInstructions = 16000;

export const maxPromptName = 64;

export const maxPromptDescription = 200;

export const maxPromptText = 16000;

export const maxFilename = 255;

/** Files whose states are read at once. */
export const maxFileStates = 50;

/** Files of one share. */
export const maxSharedFiles = 50;

/** Artifacts of one share. */
export const maxSharedArtifacts = 20;

export const maxFeedbackReasons = 6;

export const maxFeedbackComment = 2000;

/** Of the reason for the rejection of a call. */
export const maxRejectionReason = 500;

export const maxResearchQuestion = 4000;

/** Of a question of a research plan. */
export const maxResearchStep = 400;

/** Files of a research task. */
export const maxResearchFiles = 20;

/** Bytes of one import. */
export const maxImportSize = 2147483648;

/** Metres. */
export const maxLocationAccuracy = 1000000;

export const minPassword = 8;

export const maxDisplayName = 100;

export const maxPasskeyName = 100;

/** The largest budget of a research task. */
export const maxResearchBudget = { tokens: 10000000, pages: 500, seconds: 14400 };

/** The budgets of the depths. */
export const researchBudgets = {
  quick: { tokens: 100000, pages: 12, seconds: 300 },
  standard: { tokens: 400000, pages: 40, seconds: 1200 },
  deep: { tokens: 1500000, pages: 120, seconds: 3600 },
};
