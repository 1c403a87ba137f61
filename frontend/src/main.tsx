/** Entry: fonts, styles, theme, router, first render. */
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { BrowserRouter } from "react-router";
import { App } from "./app";
import { startTheme } from "./design/theme";
import { ToastProvider } from "./design/toast";
import "./design/fonts.css";
import "./design/tokens.css";
import "./design/base.css";
import "./design/layout.css";
import "./design/components.css";
import "./design/forms.css";

startTheme();
const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <BrowserRouter>
      <ToastProvider>
        <App />
      </ToastProvider>
    </BrowserRouter>
  </StrictMode>,
);
