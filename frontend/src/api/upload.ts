/** A file on its way to a signed address: its digest, and a PUT that tells how far it is. Knows no page. */
import { ApiProblem, problemOf } from "./problem";

const TERMINAL = "Upload from a terminal: prime datasets push FILE.";

const UNSAFE = () => new ApiProblem(0, "insecure_origin", "The browser computes no digest at an address without https.", TERMINAL);
const UNREACHED = () => new ApiProblem(0, "store_unreachable", "The object store cannot be reached from this page.", TERMINAL);

/** SHA-256 in hexadecimal digits. Raises ApiProblem outside a secure origin. */
export async function sha256Of(file: Blob): Promise<string> {
  if (!globalThis.isSecureContext) throw UNSAFE();
  const digest = await crypto.subtle.digest("SHA-256", await file.arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** `onProgress` is told shares from 0 to 1: fetch tells nothing of a body that is being sent. */
export function putFile(address: string, file: Blob, onProgress: (share: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.upload.addEventListener("progress", ({ loaded, total }) => onProgress(total ? loaded / total : 0));
    request.addEventListener("load", () => (request.status < 300 ? resolve() : reject(problemOf(request.status, request.responseText))));
    request.addEventListener("error", () => reject(UNREACHED()));
    request.open("PUT", address);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.send(file);
  });
}
