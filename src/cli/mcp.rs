//! `gpuaas mcp`: the platform for agents, as tools over stdin and stdout (the Model Context Protocol). They are the caller's
//! own permissions and the public API, nothing more. What would change something answers its plan and a token; only that
//! token makes it happen.

mod arguments;
mod plans;
mod tools;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

use super::client::Client;
use crate::failure::Failure;

const INSTRUCTIONS: &str = "Deploys and operates apps on GPU allocations of one project. Tools that change something \
    answer their plan and a confirm token, and do nothing; show the plan to whoever asked, then call again with the same \
    arguments and that token as confirm. \
    Changes answer at once with a workflow: follow it with wait_for_workflow. Errors have a code, what to do about it is \
    told by explain_error, and so are the reasons of instances.";

struct Server {
    client: Client,
    plans: plans::Plans,
}

pub async fn run(client: Client) -> Result<(), Failure> {
    let server = Server { client, plans: plans::Plans::default() };
    let broken =
        |error: &dyn std::fmt::Display| Failure::server(format!("the conversation broke off: {error}"));
    let running = server.serve(rmcp::transport::stdio()).await.map_err(|error| broken(&error))?;
    running.waiting().await.map(|_| ()).map_err(|error| broken(&error))
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("gpuaas", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        asked: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(asked.arguments.unwrap_or_default());
        // A refusal is for the agent to read, so it is an answer; only a tool that is none is an error of the protocol.
        match Box::pin(tools::call(&self.client, &self.plans, &asked.name, arguments)).await {
            None => Err(ErrorData::invalid_params(format!("there is no tool {}", asked.name), None)),
            Some(Ok(answer)) => Ok(CallToolResult::structured(answer).into()),
            Some(Err(failure)) => Ok(CallToolResult::structured_error(json!({ "error": failure })).into()),
        }
    }
}
