"""/v1/answer and /v1/conversations: questions to the agent."""
