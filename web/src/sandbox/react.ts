// The entry of the React library of artifacts: it sets the globals React and ReactDOM.
import * as React from "react";
import * as client from "react-dom/client";

Object.assign(globalThis, { React, ReactDOM: client });
